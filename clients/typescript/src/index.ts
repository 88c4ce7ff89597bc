/**
 * A typed client of the REST API: every path, parameter and answer as docs/openapi.json has it.
 *
 *     const api = createClient({ baseUrl: "https://api.example.com", token });
 *     const { data } = await api.GET("/v1/users/{id}", { params: { path: { id: "ada" } } });
 *     for await (const user of items(api, "/v1/users", { order: "ordered" })) { ... }
 *
 * What is refused is thrown as a `ProblemError`. What can be repeated is sent again, with jitter; a POST carries an
 * `Idempotency-Key`, so that it creates once.
 */

import createFetchClient, { type Client as FetchClient, type Middleware } from "openapi-fetch";

import { ProblemError, problemOf } from "./problem.js";
import { type Retries, retrying } from "./retrying.js";
import type { components, paths } from "./schema.js";

export { ProblemError, type FieldProblem, type Problem } from "./problem.js";
export type { Retries } from "./retrying.js";
export type { components, operations, paths } from "./schema.js";

/** The documents of the API by their names: `Schemas["User"]`. */
export type Schemas = components["schemas"];

export type Client = FetchClient<paths>;

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
  const client = createFetchClient<paths>({
    baseUrl: options.baseUrl.replace(/\/+$/, ""),
    fetch: retrying(options.fetch ?? globalThis.fetch, options.retries),
    // The API takes a field that is given several times as several values: `?year=2016&year=2017`.
    querySerializer: { array: { style: "form", explode: true } },
  });
  client.use(signing(options.token), throwing);
  return client;
}

function signing(token: Options["token"]): Middleware {
  return {
    async onRequest({ request }) {
      request.headers.set("Authorization", `Bearer ${typeof token === "string" ? token : await token()}`);
      if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
        request.headers.set("Idempotency-Key", globalThis.crypto.randomUUID());
      }
      return request;
    },
  };
}

const throwing: Middleware = {
  async onResponse({ response }) {
    if (!response.ok && response.status !== 304) {
      throw new ProblemError(await problemOf(response), response);
    }
    return response;
  },
};

type Success<T> = T extends { responses: { 200: { content: { "application/json": infer Body } } } } ? Body : never;
type Listed<T> = T extends { items: (infer Item)[]; cursor: string | null } ? Item : never;
type Get<P extends keyof paths> = paths[P] extends { get: infer Operation } ? Operation : never;

/** The paths that are listings. */
export type Listing = { [P in keyof paths]: [Listed<Success<Get<P>>>] extends [never] ? never : P }[keyof paths];
/** An item of a listing. */
export type ItemOf<P extends Listing> = Listed<Success<Get<P>>>;
/** The query parameters of a listing. */
export type QueryOf<P extends Listing> = Get<P> extends { parameters: { query?: infer Query } } ? Query : never;

export interface Page<Item> {
  /** The items; a page may be short, or even empty, before the listing ends. */
  items: Item[];
  /** Continues the listing; null, and only null, says that it has ended. */
  cursor: string | null;
}

type Get200 = (path: string, init: object) => Promise<{ data?: Page<unknown> }>;

/** The pages of a listing, from the cursor of its query on. */
export async function* pages<P extends Listing>(
  client: Client,
  path: P,
  query?: QueryOf<P>,
  signal?: AbortSignal,
): AsyncGenerator<Page<ItemOf<P>>, void, undefined> {
  let cursor: string | null | undefined = (query as { cursor?: string } | undefined)?.cursor;
  do {
    const asked = { ...(query as object | undefined), ...(cursor ? { cursor } : {}) };
    // One call for all paths: which parameters each takes was checked where this was called.
    const { data } = await (client.GET as unknown as Get200)(path, { params: { query: asked }, signal });
    const page = data as Page<ItemOf<P>>;
    yield page;
    cursor = page.cursor;
  } while (cursor !== null);
}

/** The items of a listing, page by page. */
export async function* items<P extends Listing>(
  client: Client,
  path: P,
  query?: QueryOf<P>,
  signal?: AbortSignal,
): AsyncGenerator<ItemOf<P>, void, undefined> {
  for await (const page of pages(client, path, query, signal)) {
    yield* page.items;
  }
}
