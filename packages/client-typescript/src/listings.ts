/** Listings: their pages and their items, from the first to the last. */

import type { Client } from "./client.js";
import type { Get, Success, Whole } from "./operations.js";
import { type Query, type Resume, Resumption } from "./resuming.js";
import type { paths } from "./schema.js";

type Listed<T> = T extends { items: (infer Item)[]; cursor: string | null } ? Item : never;

/** The paths that are listings. */
export type Listing = { [P in keyof paths]: [Listed<Success<Get<P>>>] extends [never] ? never : P }[keyof paths];
/** An item of a listing. */
export type ItemOf<P extends Listing> = Whole<Listed<Success<Get<P>>>>;
/** What a listing shows of an item if its query has `fields`. */
export type PartOf<P extends Listing> = Partial<ItemOf<P>>;
type Shown<P extends Listing, Q> = Q extends { fields: string } ? PartOf<P> : ItemOf<P>;
/** The query parameters of a listing. */
export type QueryOf<P extends Listing> = Get<P> extends { parameters: { query?: infer Query } } ? Query : never;

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
