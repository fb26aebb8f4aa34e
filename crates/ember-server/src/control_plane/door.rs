//! Access control for data requests: which requests are allowed, and the credentials that they contain.
//!
//! A foreign page in the same browser can also send requests to the dashboard. Three checks reject them: requests must
//! address this server by a name that the page cannot choose ([`is_addressed_to_us`]), browsers add the origin of the
//! page ([`is_from_our_page`]), and a foreign page may send a JSON body only after a preflight request, which this
//! server never approves. There are no cookies, and the browser is never asked to store a password.
//!
//! All decisions about the requested host use the single `Host` field. For every path, a request is refused if it
//! contains a host in another place, or in a form that parsers might interpret differently ([`check_target`]).

use std::net::{IpAddr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ember_config::BindAddress;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use hyper::{HeaderMap, Uri};

/// The user name and password of a request.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    /// The user's name, without a colon.
    pub(super) user: Vec<u8>,
    pub(super) password: Vec<u8>,
}

impl Credentials {
    /// Returns the credentials of a request; `None` if it has none.
    ///
    /// # Errors
    /// Returns [`Malformed`] if the scheme is not `Basic`.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Credentials>, Malformed> {
        let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
        let (scheme, encoded) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or(Malformed)?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(Malformed);
        }
        let decoded = STANDARD.decode(encoded.trim()).map_err(|_| Malformed)?;
        let colon = decoded.iter().position(|&byte| byte == b':').ok_or(Malformed)?;
        let (user, password) = (decoded[..colon].to_vec(), decoded[colon + 1..].to_vec());
        Ok(Some(Credentials { user, password }))
    }
}

/// The error for a malformed header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Checks that the request contains at most one host, in its `Host` field, in an unambiguous form.
///
/// # Errors
/// Returns the error as a line for the client.
pub(super) fn check_target(target: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    if target.authority().is_some() {
        return Err("the request target must be a path, without scheme and host\n");
    }
    let mut hosts = headers.get_all(HOST).into_iter();
    let first = hosts.next();
    if hosts.next().is_some() {
        return Err("a request must not have several Host fields\n");
    }
    match first.map(|host| host.to_str().ok().and_then(host_and_port)) {
        Some(None) => Err("the Host field must be a host and an optional port\n"),
        None | Some(Some(_)) => Ok(()),
    }
}

/// Parses a `Host` field: a host (an IPv6 address in brackets) and an optional port. A field with user information or
/// anything else is invalid (RFC 9110, section 7.2).
fn host_and_port(field: &str) -> Option<(&str, Option<u16>)> {
    let end =
        if field.starts_with('[') { field.find(']')? + 1 } else { field.find(':').unwrap_or(field.len()) };
    let (host, rest) = field.split_at(end);
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_of_name),
    };
    let port = match rest.strip_prefix(':') {
        None => rest.is_empty().then_some(None),
        Some("") => Some(None),
        Some(digits) => {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten().map(Some)
        }
    };
    Some((host, port?)).filter(|_| is_host)
}

/// Whether a byte may be in a registered name (RFC 3986, section 3.2.2).
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

/// Whether the request addresses this server under a name that an attacker cannot choose: an IP address, `localhost`,
/// or a name in `metrics-bind`. A request under another name is an attack: if an attacker's name resolves to this
/// server, the attacker's pages under that name have the same origin.
pub(super) fn is_addressed_to_us(headers: &HeaderMap, bind: &[BindAddress]) -> bool {
    named_host(headers).is_some_and(|host| {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
        address.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || bind.iter().any(|bind| bind.host.eq_ignore_ascii_case(&host))
    })
}

/// Returns the requested host, without its port.
pub(super) fn named_host(headers: &HeaderMap) -> Option<String> {
    let (host, _) = host_and_port(host_of(headers)?)?;
    Some(host.to_owned())
}

/// Whether the request cannot come from a foreign page: its origin is this server, or it has no origin, like requests
/// of programs other than browsers.
pub(super) fn is_from_our_page(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.zip(host_of(headers)).is_some_and(|((_, origin), host)| origin.eq_ignore_ascii_case(host))
}

/// Whether the content type of a request is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn host_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(HOST)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let field = |&(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn only_own_addresses_and_names_are_accepted_as_host() {
        let bind = [BindAddress { host: "ember.example".to_owned(), optional: false }];
        for host in [
            "127.0.0.1:9121",
            "127.0.0.1",
            "127.0.0.1:",
            "[::1]:9121",
            "[::1]",
            "10.1.2.3:80",
            "LOCALHOST:1",
            "Ember.Example:9121",
        ] {
            assert!(is_addressed_to_us(&headers(&[("host", host)]), &bind), "{host}");
        }
        for host in [
            "evil.example:9121",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "a@127.0.0.1",
            "[::1",
            "[::1]evil",
            "[::1]evil:80",
            "[::1]:80evil",
            "[::1]:80:80",
            "[127.0.0.1]",
            "[localhost]",
            "::1",
            "127.0.0.1:65536",
            "127.0.0.1:+80",
            "127.0.0.1:80@evil",
            "127.0.0.1/evil",
            "127.0.0.1, evil",
            "localhost\\evil",
        ] {
            assert!(!is_addressed_to_us(&headers(&[("host", host)]), &bind), "{host}");
        }
        assert!(!is_addressed_to_us(&HeaderMap::new(), &bind));
    }

    #[test]
    fn a_request_names_one_host_in_one_place() {
        let check = |target: &str, hosts: &[&str]| {
            let fields: Vec<_> = hosts.iter().map(|&host| ("host", host)).collect();
            let mut all = HeaderMap::new();
            for (name, value) in fields {
                all.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            }
            check_target(&target.parse().unwrap(), &all)
        };
        for hosts in [&[][..], &["127.0.0.1:9121"], &["[::1]"], &["any.example"]] {
            assert_eq!(check("/dashboard/", hosts), Ok(()), "{hosts:?}");
        }
        for (target, hosts) in [
            ("/", &["127.0.0.1", "evil.example"][..]),
            ("/", &["127.0.0.1", "127.0.0.1"]),
            ("/", &["[::1]evil"]),
            ("/", &[""]),
            ("http://127.0.0.1/", &["127.0.0.1"]),
            ("http://evil.example/dashboard/", &["127.0.0.1"]),
            ("evil.example:80", &["127.0.0.1"]),
        ] {
            assert!(check(target, hosts).is_err(), "{target} {hosts:?}");
        }
    }

    #[test]
    fn requests_of_other_pages_are_recognised() {
        let host = ("host", "127.0.0.1:9121");
        let from = |fields: &[(&'static str, &str)]| is_from_our_page(&headers(&[&[host], fields].concat()));
        assert!(from(&[]));
        assert!(from(&[("origin", "http://127.0.0.1:9121")]));
        assert!(from(&[("sec-fetch-site", "same-origin"), ("origin", "https://proxy.example")]));
        assert!(!from(&[("origin", "http://127.0.0.1:9122")]));
        assert!(!from(&[("origin", "http://evil.example")]));
        assert!(!from(&[("origin", "null")]));
        for site in ["cross-site", "same-site", "none"] {
            assert!(!from(&[("sec-fetch-site", site), ("origin", "http://127.0.0.1:9121")]), "{site}");
        }
    }

    #[test]
    fn credentials_are_bytes_and_only_the_name_ends_at_a_colon() {
        let of = |value: &str| Credentials::of(&headers(&[("authorization", value)]));
        let encoded = STANDARD.encode(b"alice:a:b\xff");
        let found = of(&format!("basic {encoded}")).ok().flatten().unwrap();
        assert_eq!((found.user.as_slice(), found.password.as_slice()), (&b"alice"[..], &b"a:b\xff"[..]));
        assert!(Credentials::of(&HeaderMap::new()).is_ok_and(|found| found.is_none()));
        for bad in ["Basic", "Basic !!!!", "Bearer abc", &format!("Basic {}", STANDARD.encode("no colon"))] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn json_is_recognized_only_by_its_content_type() {
        assert!(is_json(&headers(&[("content-type", "application/json; charset=utf-8")])));
        for other in ["text/plain", "application/x-www-form-urlencoded", "text/plain; application/json"] {
            assert!(!is_json(&headers(&[("content-type", other)])), "{other}");
        }
    }
}
