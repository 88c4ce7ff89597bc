/**
 * A typed client of the REST API: every path, parameter and answer as docs/openapi.json has it.
 *
 *     const api = createClient({ baseUrl: "https://api.example.com", token });
 *     const { data } = await api.GET("/v1/users/{id}", { params: { path: { id: "ada" } } });
 *     for await (const user of items(api, "/v1/users", { order: "ordered" })) { ... }
 *
 * What is refused is thrown as a `ProblemError`. What can be repeated is sent again, with jitter; a POST carries an
 * `Idempotency-Key`, so that it creates once. If the API cannot tell the outcome of a put or patch, the client reads the
 * item, and returns it if its revision proves that the write was applied.
 */

import type { components } from "./schema.js";

export { batch, type BatchOf, type Batched, type Failure, type Outcome, type OutcomeOf, type RequestOf } from "./batches.js";
export { createClient, createDeferredClient, type Client, type DeferredClient, type Options } from "./client.js";
export { count, type Counted, type CountQuery } from "./counts.js";
export { items, pages, type ItemOf, type Listing, type Page, type PartOf, type QueryOf } from "./listings.js";
export { part, type AddressOf, type ItemAt, type ItemPath } from "./parts.js";
export { ProblemError, type FieldProblem, type Problem } from "./problem.js";
export type { Resume } from "./resuming.js";
export type { Retries } from "./retrying.js";
export type { components, operations, paths } from "./schema.js";

/** The documents of the API by their names: `Schemas["User"]`. */
export type Schemas = components["schemas"];
