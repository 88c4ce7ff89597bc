/** Refusals: problem documents (RFC 9457), thrown as errors. */

import type { components } from "./schema.js";

export type Problem = components["schemas"]["Problem"];
export type FieldProblem = NonNullable<Problem["errors"]>[number];

/** What the API, or the gateway before it, has refused. `problem.code` is stable; docs/errors.md lists all codes. */
export class ProblemError extends Error {
  readonly problem: Problem;
  readonly response: Response;

  constructor(problem: Problem, response: Response) {
    super(`${problem.code}: ${problem.detail}`);
    this.name = "ProblemError";
    this.problem = problem;
    this.response = response;
  }

  get code(): string {
    return this.problem.code;
  }

  get status(): number {
    return this.problem.status;
  }

  /** The fields at fault. */
  get errors(): FieldProblem[] {
    return this.problem.errors ?? [];
  }

  /** When the same request can succeed, in seconds; undefined if nobody says. */
  get retryAfter(): number | undefined {
    return seconds(this.response);
  }
}

/** What `Retry-After` says, in seconds. */
export function seconds(response: Response): number | undefined {
  const text = response.headers.get("Retry-After");
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** The problem in an answer; one made up of its status where the gateway has answered, which says little. */
export async function problemOf(response: Response): Promise<Problem> {
  const type = response.headers.get("Content-Type") ?? "";
  if (type.startsWith("application/problem+json")) {
    return (await response.clone().json()) as Problem;
  }
  return {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: `The gateway answered ${response.status}.`,
    code: CODES[response.status] ?? "refused",
    request_id: response.headers.get("apigw-requestid") ?? "unknown",
  };
}

const CODES: Record<number, string> = {
  401: "unauthenticated",
  403: "forbidden",
  404: "no_such_route",
  413: "body_too_large",
  429: "throttled",
  500: "engine_unavailable",
  502: "engine_unavailable",
  503: "engine_unavailable",
  504: "engine_unavailable",
};
