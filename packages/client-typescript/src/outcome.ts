/** Writes whose outcome the API could not tell: a read of the client's own may prove that they were applied. */

import type { Problem } from "./problem.js";

type Fetch = (request: Request) => Promise<Response>;

/**
 * The answer of a consistent read that proves that a write was applied; undefined if nothing is proved.
 *
 * A put or patch of unknown outcome names the revision that it gives the item. If the item stands at that revision, the
 * write was applied. Any other revision proves nothing: the write may have been replaced since, or may still be applied.
 */
export async function proved(request: Request, problem: Problem, fetch: Fetch): Promise<Response | undefined> {
  const revision = problem.details?.revision;
  if (problem.code !== "outcome_unknown" || !["PUT", "PATCH"].includes(request.method) || !revision) return undefined;
  const headers = new Headers({ Authorization: request.headers.get("Authorization") ?? "" });
  const { origin, pathname } = new URL(request.url);
  try {
    const answer = await fetch(new Request(`${origin}${pathname}?consistent=true`, { headers, signal: request.signal }));
    return answer.status === 200 && answer.headers.get("ETag") === `"${String(revision)}"` ? answer : undefined;
  } catch {
    return undefined;
  }
}
