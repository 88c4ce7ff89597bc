/**
 * Listings that continue without their cursor, when the API refuses it: keyset pagination by the client itself.
 *
 * An ordered listing continues from the last sort key that it returned. In the other orders no key says what is left,
 * so the listing begins again, and leaves out what it has returned.
 */

import { ProblemError } from "./problem.js";

/** How a listing goes on after its cursor was refused. */
export interface Resume<Item> {
  /** The text that tells an item of the listing from all others, such as its `id`; with `distinct`, that field. */
  id: (item: Item) => string;
  /** The sort key of an item as `from` takes it; required if the order is `ordered`. Without an index it is often the id. */
  key?: (item: Item) => string;
}

/** How often in turn a listing continues without finding a further item. */
const ATTEMPTS = 5;
/** Items that a listing remembers if no sort key says what is left of it. */
const MOST_REMEMBERED = 1_000_000;
/** The most bytes of a sort key. */
const LONGEST_KEY = 1024;
const REFUSALS = new Set(["invalid_cursor", "unsupported_cursor"]);

export type Query = Record<string, unknown>;

/** What one listing has returned, and how it continues without a cursor. */
export class Resumption<Item> {
  readonly #resume: Resume<Item>;
  readonly #ordered: boolean;
  readonly #forward: boolean;
  readonly #byKey: boolean;
  readonly #returned = new Set<string>();
  #last: string | undefined;
  #vain = 0;

  constructor(resume: Resume<Item>, query: Query) {
    this.#resume = resume;
    this.#ordered = query["order"] === "ordered";
    this.#forward = query["direction"] !== "desc";
    // Copies of an item have other keys, so all values are remembered that were returned.
    this.#byKey = this.#ordered && query["distinct"] === undefined;
    if (this.#ordered && resume.key === undefined) {
      throw new TypeError("an ordered listing that may be resumed needs the sort key of an item: give resume.key");
    }
  }

  /** The items that were not returned before; they are remembered. */
  unseen(items: Item[]): Item[] {
    const unseen = items.filter((item) => this.#isNew(item));
    if (unseen.length > 0) this.#vain = 0;
    return unseen;
  }

  /** The query that continues the listing after a refusal; undefined if nothing can. */
  continued(query: Query, error: unknown): Query | undefined {
    if (!(error instanceof ProblemError) || !REFUSALS.has(error.code)) return undefined;
    if (this.#returned.size === 0 || this.#returned.size > MOST_REMEMBERED || this.#vain === ATTEMPTS) return undefined;
    this.#vain += 1;
    const { cursor: _, ...again } = query;
    if (this.#last === undefined || new TextEncoder().encode(this.#last).length >= LONGEST_KEY) return again;
    // The end of a range is exclusive, and the next text after another is that text and a NUL.
    return { ...again, ...(this.#forward ? { from: this.#last } : { to: `${this.#last}\0` }) };
  }

  #isNew(item: Item): boolean {
    if (this.#ordered && this.#resume.key !== undefined) {
      const key = this.#resume.key(item);
      if (this.#byKey && key !== this.#last) {
        if (this.#last !== undefined && inOrder(this.#last, key) !== this.#forward) return false;
        this.#returned.clear();
      }
      this.#last = key;
    }
    const id = this.#resume.id(item);
    if (this.#returned.has(id)) return false;
    this.#returned.add(id);
    return true;
  }
}

/** Whether one text comes before another different one by their code points, as DynamoDB orders them. */
function inOrder(one: string, other: string): boolean {
  const [first, second] = [Array.from(one), Array.from(other)];
  for (let at = 0; at < first.length && at < second.length; at += 1) {
    const [a, b] = [first[at]?.codePointAt(0) ?? 0, second[at]?.codePointAt(0) ?? 0];
    if (a !== b) return a < b;
  }
  return first.length < second.length;
}
