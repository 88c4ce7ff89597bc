/** Clients: what sends requests, with a token and an idempotency key, and throws what is refused. */

import createFetchClient, { type Client as FetchClient, type Middleware } from "openapi-fetch";

import type { Deferred, Prompt } from "./operations.js";
import { proved } from "./outcome.js";
import { ProblemError, problemOf } from "./problem.js";
import { repeats, type Retries, retrying } from "./retrying.js";
import type { paths } from "./schema.js";

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
  client.use(addressable, signing(options.token), ...more, throwing);
  return client;
}

/**
 * Refuses keys that no path can carry, because their path leads to another item or resource: fetch resolves `.` and `..`,
 * and the gateway cuts a path at a decoded `?` and passes on a decoded `/`, which divides all fields but the last.
 */
const addressable: Middleware = {
  onRequest({ schemaPath, params }) {
    for (const [name, given] of Object.entries(params.path ?? {})) {
      const value = String(given);
      const inner = !schemaPath.endsWith(`{${name}}`) && value.includes("/");
      if (value === "" || value === "." || value === ".." || value.includes("?") || inner) {
        throw new TypeError(`${name} is ${JSON.stringify(value)}, which no path can carry.`);
      }
    }
  },
};

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
