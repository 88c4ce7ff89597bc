/** Requests that are sent again: after throttles, failures of a gateway, and answers that never came. */

import { seconds } from "./problem.js";

export interface Retries {
  /** How often a request is sent at most, the first time included. */
  attempts: number;
  /** Bounds of the exponential backoff, in seconds; pauses are drawn evenly from zero to the bound. */
  firstPause: number;
  longestPause: number;
  sleep: (seconds: number) => Promise<void>;
  random: () => number;
}

const DEFAULTS: Retries = {
  attempts: 5,
  firstPause: 0.2,
  longestPause: 10,
  sleep: (pause) => new Promise((resolve) => setTimeout(resolve, pause * 1000)),
  random: Math.random,
};

const THROTTLED = 429;
const LOST = new Set([502, 503, 504]);

type Fetch = typeof globalThis.fetch;

/** A fetch that sends again what can be repeated. */
export function retrying(fetch: Fetch, chosen: Partial<Retries> = {}): Fetch {
  const retries = { ...DEFAULTS, ...chosen };
  return async (input, init) => {
    const request = new Request(input, init);
    for (let attempt = 1; ; attempt++) {
      const last = attempt >= retries.attempts;
      let answer: Response;
      try {
        answer = await fetch(last ? request : request.clone());
      } catch (error) {
        if (last || request.signal.aborted || !repeatable(request)) throw error;
        await pause(retries, attempt, 0);
        continue;
      }
      if (last || !again(request, answer)) return answer;
      await answer.body?.cancel();
      await pause(retries, attempt, seconds(answer) ?? 0);
    }
  };
}

function again(request: Request, answer: Response): boolean {
  if (answer.status === THROTTLED) return true;
  // 409 with Retry-After: another request holds the item, or the first one with this key is under way.
  if (answer.status === 409) return seconds(answer) !== undefined;
  // 503 with Retry-After is the backend's own word that nothing was done, or that the key makes a repeat safe.
  if (answer.status === 503 && seconds(answer) !== undefined) return true;
  return LOST.has(answer.status) && repeatable(request);
}

/** Whether a request may be sent again although it may have been done: a write could undo what others wrote since. */
function repeatable(request: Request): boolean {
  if (request.method === "GET" || request.method === "HEAD") return true;
  return request.method === "POST" && request.headers.has("Idempotency-Key");
}

function pause(retries: Retries, attempt: number, least: number): Promise<void> {
  const bound = Math.min(retries.firstPause * 2 ** (attempt - 1), retries.longestPause);
  return retries.sleep(least + retries.random() * bound);
}

const SAFE = new Set(["get", "create"]);

/**
 * Whether a POST may carry a key by which it is sent again when its answer is lost. A batch that puts, updates or deletes
 * may not: a repeat could undo what others wrote since.
 */
export async function repeats(request: Request): Promise<boolean> {
  if (!new URL(request.url).pathname.endsWith("/batch")) return true;
  const body = (await request.clone().json()) as { requests?: { operation?: string }[] };
  return (body.requests ?? []).every((each) => SAFE.has(each.operation ?? ""));
}
