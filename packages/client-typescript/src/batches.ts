/** Batches: up to 100 requests at a time, each done by itself, with an outcome each. */

import type { Client } from "./client.js";
import type { components, paths } from "./schema.js";

type Body<P extends keyof paths> = paths[P] extends {
  post: { requestBody: { content: { "application/json": infer Sent } } };
}
  ? Sent
  : never;

/** The resources that take batches, such as `/v1/users`. */
export type Batched = {
  [P in keyof paths]: P extends `${infer Root}/batch` ? (Root extends keyof paths ? Root : never) : never;
}[keyof paths];
export type BatchOf<P extends Batched> = Body<`${P}/batch` & keyof paths>;
/** A request of a batch. */
export type RequestOf<P extends Batched> = BatchOf<P> extends { requests: (infer One)[] } ? One : never;
/** A request that was not done, and why. */
export type Failure = components["schemas"]["Failure"];
/** What became of a request. */
export type Outcome<Result> = { ok: true; result: Result } | Failure;
type Answer<P extends keyof paths> = paths[P] extends {
  post: { responses: { 200: { content: { "application/json": { outcomes: (infer One)[] } } } } };
}
  ? One
  : never;
/** What became of a request of a resource. */
export type OutcomeOf<P extends Batched> = Answer<`${P}/batch` & keyof paths>;

/** Requests that one batch takes. */
const MOST = 100;

type Post = (path: string, init: object) => Promise<{ data?: { outcomes: unknown[] } }>;

/**
 * Do requests, and return what became of each, in their order: `batch(api, "/v1/users", [{ operation: "get", key: { id } }])`.
 * More than a hundred are sent as several batches, one after another.
 */
export async function batch<P extends Batched>(
  client: Client,
  path: P,
  requests: readonly RequestOf<P>[],
  signal?: AbortSignal,
): Promise<OutcomeOf<P>[]> {
  const outcomes: unknown[] = [];
  for (let at = 0; at < requests.length; at += MOST) {
    const body = { requests: requests.slice(at, at + MOST) };
    const { data } = await (client.POST as unknown as Post)(`${path}/batch`, { body, signal });
    outcomes.push(...(data?.outcomes ?? []));
  }
  return outcomes as OutcomeOf<P>[];
}
