//! The dashboard's files, embedded in the binary.

use hyper::Response;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY};

use http_body_util::Full;

use crate::control_plane::answer::of_type;

/// The page's content security policy: the page may load its own files and send requests to its own server. External
/// resources and inline code are forbidden, and the browser refuses to parse text as elements.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// An embedded file: its path after `/dashboard/`, its media type and its contents.
struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($path:literal: $kind:ident,)*) => {
        &[$(File {
            path: $path,
            kind: $kind,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboard/", $path)),
        },)*]
    };
}

const FILES: &[File] = files! {
    "index.html": HTML,
    "style.css": CSS,
    "icon.svg": SVG,
    "main.js": SCRIPT,
    "address.js": SCRIPT,
    "analysis.js": SCRIPT,
    "api.js": SCRIPT,
    "bytes.js": SCRIPT,
    "charts.js": SCRIPT,
    "clients.js": SCRIPT,
    "completion.js": SCRIPT,
    "configuration.js": SCRIPT,
    "console.js": SCRIPT,
    "documents.js": SCRIPT,
    "dom.js": SCRIPT,
    "elements.js": SCRIPT,
    "format.js": SCRIPT,
    "formats.js": SCRIPT,
    "glob.js": SCRIPT,
    "groups.js": SCRIPT,
    "heavy.js": SCRIPT,
    "json.js": SCRIPT,
    "keys.js": SCRIPT,
    "live.js": SCRIPT,
    "overview.js": SCRIPT,
    "persistence.js": SCRIPT,
    "profiler.js": SCRIPT,
    "pubsub.js": SCRIPT,
    "replication.js": SCRIPT,
    "slowlog.js": SCRIPT,
    "streams.js": SCRIPT,
    "users.js": SCRIPT,
    "value.js": SCRIPT,
};

/// Returns the file at a path after `/dashboard/`, if there is one.
pub(super) fn answer(path: &str) -> Option<Response<Full<Bytes>>> {
    let path = if path.is_empty() { "index.html" } else { path };
    let file = FILES.iter().find(|file| file.path == path)?;
    Some(of_type(StatusCode::OK, file.kind, file.text))
}

/// Adds the security headers that every dashboard response has, including data.
pub(super) fn confine(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static("same-origin"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn all_files_of_the_folder_are_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboard");
        let names =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let served: BTreeSet<String> = FILES.iter().map(|file| file.path.to_owned()).collect();
        assert_eq!(names.collect::<BTreeSet<_>>(), served);
    }

    /// The security policy forbids both, so code that violates this test would not work in a browser.
    #[test]
    fn the_page_parses_no_html_from_text_and_contacts_no_other_server() {
        let forbidden =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=", "onclick="];
        for file in FILES {
            for word in forbidden {
                assert!(!file.text.contains(word), "{}: {word}", file.path);
            }
            let elsewhere = file.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{}", file.path);
        }
    }
}
