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

import createFetchClient, { type Client as FetchClient, type Middleware } from "openapi-fetch";

import { proved } from "./outcome.js";
import { repeats } from "./batches.js";
import { ProblemError, problemOf } from "./problem.js";
import { type Query, type Resume, Resumption } from "./resuming.js";
import { type Retries, retrying } from "./retrying.js";
import type { components, paths } from "./schema.js";

export { batch, type BatchOf, type Batched, type Failure, type Outcome, type OutcomeOf, type RequestOf } from "./batches.js";
export { count, type Counted, type CountQuery } from "./counts.js";
export { ProblemError, type FieldProblem, type Problem } from "./problem.js";
export type { Resume } from "./resuming.js";
export type { Retries } from "./retrying.js";
export type { components, operations, paths } from "./schema.js";

/** The documents of the API by their names: `Schemas["User"]`. */
export type Schemas = components["schemas"];

type Json<Body> = { content: { "application/json": Body } };
/** Of what a read may show, the whole items: a part, which only a query with `fields` gets, may be empty. */
type Whole<T> = T extends unknown ? (object extends T ? never : T) : never;
/** Whether a read may show an item whole or in part. */
type HasPart<R> = R extends { 200: Json<infer Body> } ? ([Body] extends [Whole<Body>] ? false : true) : false;

/**
 * An operation as it answers without `Prefer: respond-async` or `return=minimal`: never 202 or 204, unless nothing else
 * succeeds. That leaves the entity as the type of what a write returns. A read returns the whole item: `part` reads some
 * fields, with their types.
 */
type Prompt<O> = O extends { responses: infer R }
  ? HasPart<R> extends true
    ? WholeRead<O>
    : Extract<keyof R, 200 | 201> extends never
      ? Extract<keyof R, 204> extends never
        ? O
        : Omit<O, "responses"> & { responses: Omit<R, 202> }
      : Omit<O, "responses"> & { responses: Omit<R, 202 | 204> }
  : O;
type WholeRead<O> = O extends { parameters: infer P; responses: infer R extends { 200: Json<unknown> } }
  ? Omit<O, "parameters" | "responses"> & {
      parameters: { [K in keyof P]: K extends "query" ? Omit<Exclude<P[K], undefined>, "fields"> : P[K] };
      responses: Omit<R, 200> & {
        200: Omit<R[200], "content"> & Json<Whole<R[200]["content"]["application/json"]>>;
      };
    }
  : O;
/** An operation as it answers with `Prefer: respond-async`: 202 and the record of the operation. */
type Deferred<O> = O extends { responses: { 202: infer A } }
  ? Omit<O, "responses"> & { responses: { 202: A } }
  : undefined extends O
    ? O
    : never;

type PromptPaths = { [P in keyof paths]: { [M in keyof paths[P]]: Prompt<paths[P][M]> } };
type DeferredPaths = { [P in keyof paths]: { [M in keyof paths[P]]: Deferred<paths[P][M]> } };

export type Client = FetchClient<PromptPaths>;
/** A client whose writes are accepted at once and done soon after. */
export type DeferredClient = FetchClient<DeferredPaths>;

export interface Options {
  /** Where the API is, without `/v1`. */
  baseUrl: string;
  /** The bearer token, or what gives one before every request. */
  token: string | (() => string | Promise<string>);
  /** How requests are sent; the platform's own fetch by default. */
  fetch?: typeof globalThis.fetch;
  /** How often, and how long to wait in between. */
  retries?: Partial<Retries>;
}

/** A client. All paths begin with `/v1`, as in the OpenAPI document. */
export function createClient(options: Options): Client {
  return open<PromptPaths>(options, []);
}

/**
 * A client that sends `Prefer: respond-async`: a write answers 202 with the record of the operation, and is done soon
 * after. `GET /v1/operations/{id}` returns its outcome.
 */
export function createDeferredClient(options: Options): DeferredClient {
  return open<DeferredPaths>(options, [deferring]);
}

function open<P extends object>(options: Options, more: Middleware[]): FetchClient<P> {
  const client = createFetchClient<P>({
    baseUrl: options.baseUrl.replace(/\/+$/, ""),
    fetch: retrying(options.fetch ?? globalThis.fetch, options.retries),
    // The API takes a field that is given several times as several values: `?year=2016&year=2017`.
    querySerializer: { array: { style: "form", explode: true } },
  });
  client.use(signing(options.token), ...more, throwing);
  return client;
}

const deferring: Middleware = {
  async onRequest({ request }) {
    request.headers.set("Prefer", "respond-async");
    return request;
  },
};

function signing(token: Options["token"]): Middleware {
  return {
    async onRequest({ request }) {
      request.headers.set("Authorization", `Bearer ${typeof token === "string" ? token : await token()}`);
      if (request.method === "POST" && !request.headers.has("Idempotency-Key") && (await repeats(request))) {
        request.headers.set("Idempotency-Key", globalThis.crypto.randomUUID());
      }
      return request;
    },
  };
}

const throwing: Middleware = {
  async onResponse({ request, response, options }) {
    if (response.ok || response.status === 304) return response;
    const problem = await problemOf(response);
    const answer = await proved(request, problem, options.fetch);
    if (answer === undefined) throw new ProblemError(problem, response);
    return answer;
  },
};

type Success<T> = T extends { responses: { 200: { content: { "application/json": infer Body } } } } ? Body : never;
type Listed<T> = T extends { items: (infer Item)[]; cursor: string | null } ? Item : never;
type Get<P extends keyof paths> = paths[P] extends { get: infer Operation } ? Operation : never;

/** The paths that are listings. */
export type Listing = { [P in keyof paths]: [Listed<Success<Get<P>>>] extends [never] ? never : P }[keyof paths];
/** An item of a listing. */
export type ItemOf<P extends Listing> = Whole<Listed<Success<Get<P>>>>;
/** What a listing shows of an item if its query has `fields`. */
export type PartOf<P extends Listing> = Partial<ItemOf<P>>;
type Shown<P extends Listing, Q> = Q extends { fields: string } ? PartOf<P> : ItemOf<P>;
/** The query parameters of a listing. */
export type QueryOf<P extends Listing> = Get<P> extends { parameters: { query?: infer Query } } ? Query : never;

/** The paths of single items that can be read. */
export type ItemPath = {
  [P in keyof paths]: Get<P> extends { responses: infer R } ? (HasPart<R> extends true ? P : never) : never;
}[keyof paths];
/** A single item, as a whole. */
export type ItemAt<P extends ItemPath> = Whole<Success<Get<P>>>;
/** The values in the path of a single item. */
export type AddressOf<P extends ItemPath> = paths[P] extends { parameters: { path: infer Address } } ? Address : never;

/** Some fields of a single item: `part(api, "/v1/users/{id}", { id }, ["status"])`. */
export async function part<P extends ItemPath, F extends keyof ItemAt<P> & string>(
  client: Client,
  path: P,
  address: AddressOf<P>,
  fields: readonly F[],
  signal?: AbortSignal,
): Promise<Pick<ItemAt<P>, F>> {
  const params = { path: address, query: { fields: fields.join(",") } };
  const { data } = await (client.GET as unknown as GetPart)(path, { params, signal });
  return data as Pick<ItemAt<P>, F>;
}

type GetPart = (path: string, init: object) => Promise<{ data?: unknown }>;

export interface Page<Item> {
  /** The items; a page may be short, or even empty, before the listing ends. */
  items: Item[];
  /** Continues the listing; null, and only null, says that it has ended. */
  cursor: string | null;
}

type Get200 = (path: string, init: object) => Promise<{ data?: Page<unknown> }>;

/** The pages of a listing, from the cursor of its query on. With `resume` it goes on after a cursor that is refused. */
export async function* pages<P extends Listing, Q extends QueryOf<P> = QueryOf<P>>(
  client: Client,
  path: P,
  query?: Q,
  signal?: AbortSignal,
  resume?: Resume<Shown<P, Q>>,
): AsyncGenerator<Page<Shown<P, Q>>, void, undefined> {
  let asked: Query = { ...(query as object | undefined) };
  const resumption = resume && new Resumption(resume, asked);
  for (;;) {
    let page: Page<Shown<P, Q>>;
    try {
      // One call for all paths: which parameters each takes was checked where this was called.
      const { data } = await (client.GET as unknown as Get200)(path, { params: { query: asked }, signal });
      page = data as Page<Shown<P, Q>>;
    } catch (error) {
      const again = resumption?.continued(asked, error);
      if (again === undefined) throw error;
      asked = again;
      continue;
    }
    yield resumption ? { ...page, items: resumption.unseen(page.items) } : page;
    if (page.cursor === null) return;
    asked = { ...asked, cursor: page.cursor };
  }
}

/** The items of a listing, page by page. */
export async function* items<P extends Listing, Q extends QueryOf<P> = QueryOf<P>>(
  client: Client,
  path: P,
  query?: Q,
  signal?: AbortSignal,
  resume?: Resume<Shown<P, Q>>,
): AsyncGenerator<Shown<P, Q>, void, undefined> {
  for await (const page of pages(client, path, query, signal, resume)) {
    yield* page.items;
  }
}
