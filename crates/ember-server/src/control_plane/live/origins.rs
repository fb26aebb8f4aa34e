//! The web pages that may watch: those with an origin in `http-watch-origins`.
//!
//! A browser sends the origin of the page if it differs from that of the server, and lets the page read the response
//! only if the response contains this origin. A request without an origin comes from a page of the same origin (if a
//! proxy serves the page and ember under one name), or from a program other than a browser.

use ember_config::origins::Origins;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, HeaderMap, HeaderValue, ORIGIN, VARY,
};

/// The number of seconds for which a browser may cache a preflight response.
const PREFLIGHT_SECONDS: &str = "600";

/// The kind of page that sent a request, according to the request's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// The request comes from a page of the same origin, or from a program other than a browser.
    Own,
    /// The request comes from a page of this allowed origin.
    Allowed(HeaderValue),
    /// The request comes from a page of an origin that is not allowed.
    Foreign,
}

impl Page {
    /// Determines the kind of page from the headers of a request.
    pub(super) fn of(headers: &HeaderMap, origins: &Origins) -> Page {
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if matches!(site, Some(b"same-origin" | b"none")) {
            return Page::Own;
        }
        match headers.get(ORIGIN) {
            Some(origin) if origin.to_str().is_ok_and(|origin| origins.allow(origin)) => {
                Page::Allowed(origin.clone())
            }
            Some(_) => Page::Foreign,
            // The request loads an image or a frame of another page, which could not read the response.
            None if site.is_some() => Page::Foreign,
            None => Page::Own,
        }
    }

    /// Adds the header that lets the page read the response.
    pub(super) fn allow_reading(&self, headers: &mut HeaderMap) {
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        if let Page::Allowed(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
    }
}

/// Sets the methods and headers that pages of an allowed origin may use.
pub(super) fn permit(headers: &mut HeaderMap) {
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Last-Event-ID"),
        (ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;

    fn page(fields: &[(&'static str, &'static str)], origins: &str) -> Page {
        let field = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        Page::of(&fields.iter().map(field).collect(), &Origins::parse(origins).unwrap())
    }

    #[test]
    fn only_pages_of_listed_origins_get_an_answer() {
        let listed = "https://app.example http://127.0.0.1:8080";
        let app = ("origin", "https://app.example");
        let allowed = Page::Allowed(HeaderValue::from_static("https://app.example"));
        assert_eq!(page(&[app], listed), allowed);
        assert_eq!(page(&[app, ("sec-fetch-site", "cross-site")], listed), allowed);
        assert_eq!(page(&[app], ""), Page::Foreign);
        assert_eq!(page(&[("origin", "https://app.example.evil")], listed), Page::Foreign);
        assert_eq!(page(&[("origin", "null")], listed), Page::Foreign);
        assert_eq!(page(&[("origin", "null")], "*"), Page::Allowed(HeaderValue::from_static("null")));
    }

    #[test]
    fn programs_and_pages_of_the_same_origin_need_not_be_listed() {
        assert_eq!(page(&[], ""), Page::Own);
        assert_eq!(
            page(&[("sec-fetch-site", "same-origin"), ("origin", "https://x.example")], ""),
            Page::Own
        );
        assert_eq!(page(&[("sec-fetch-site", "none")], ""), Page::Own);
        for site in ["cross-site", "same-site"] {
            assert_eq!(page(&[("sec-fetch-site", site)], "*"), Page::Foreign);
        }
    }
}
