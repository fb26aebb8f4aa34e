// The part of the URL after `#`: the name of the view and its contents, so that a reload shows the same view.
//
//     #keys?pattern=user%3A*&type=hash&database=1&key=user%3A7

/** Returns the name of the view in the URL. */
export function viewName() {
  return location.hash.slice(1).split("?")[0];
}

/** Returns the parameters in the URL as an object. */
export function parameters() {
  const [, query = ""] = location.hash.split(/\?(.*)/s);
  return Object.fromEntries(new URLSearchParams(query));
}

/** Returns the URL of a view with parameters; those that are undefined or empty are omitted. */
export function addressOf(view, values = {}) {
  const known = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString();
  return query ? `#${view}?${query}` : `#${view}`;
}

/** Replaces the URL without another entry in the history of the browser, if this view is shown. */
export function keepAddress(view, values) {
  if (viewName() === view) {
    history.replaceState(null, "", addressOf(view, values));
  }
}
