//! The door: which requests about data are let in, and who asks.
//!
//! A page of somebody else's in the same browser can send requests to the dashboard too. It is kept out thrice: it cannot
//! name this server by a name of its own ([`is_addressed_to_us`]), its requests say where they come from
//! ([`comes_from_our_page`]), and a body that is JSON it may send only after asking, which nobody answers. There are no
//! cookies, and the browser is never asked to remember a password.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use hyper::http::uri::Authority;

use crate::config::BindAddress;

/// Who somebody says to be.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    /// The user's name; it has no colon.
    pub(super) user: Vec<u8>,
    pub(super) password: Vec<u8>,
}

impl Credentials {
    /// Those of a request; `None` if it has none.
    ///
    /// # Errors
    /// That they are not those of the scheme `Basic`.
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

/// A field of the head is not what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Whether the request names this server as only those can who mean it: by an IP address, as `localhost`, or by a name in
/// `metrics-bind`. A foreign name that leads here is an attack: pages under that name would count as ours.
pub(super) fn is_addressed_to_us(headers: &HeaderMap, bind: &[BindAddress]) -> bool {
    named_host(headers).is_some_and(|host| {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
        address.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || bind.iter().any(|bind| bind.host.eq_ignore_ascii_case(&host))
    })
}

/// The host that the request names, without its port.
pub(super) fn named_host(headers: &HeaderMap) -> Option<String> {
    let authority = host_of(headers)?.parse::<Authority>().ok()?;
    (!authority.as_str().contains('@')).then(|| authority.host().to_owned())
}

/// Whether no page but ours can have sent the request. Programs that are no browsers do not say where they come from.
pub(super) fn comes_from_our_page(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.zip(host_of(headers)).is_some_and(|((_, origin), host)| origin.eq_ignore_ascii_case(host))
}

/// Whether the body is said to be JSON.
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
    fn only_addresses_and_names_of_ours_are_us() {
        let bind = [BindAddress { host: "ember.example".to_owned(), optional: false }];
        for host in
            ["127.0.0.1:9121", "127.0.0.1", "[::1]:9121", "10.1.2.3:80", "LOCALHOST:1", "Ember.Example:9121"]
        {
            assert!(is_addressed_to_us(&headers(&[("host", host)]), &bind), "{host}");
        }
        for host in [
            "evil.example:9121",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "a@127.0.0.1",
            "[::1",
        ] {
            assert!(!is_addressed_to_us(&headers(&[("host", host)]), &bind), "{host}");
        }
        assert!(!is_addressed_to_us(&HeaderMap::new(), &bind));
    }

    #[test]
    fn requests_of_other_pages_are_recognised() {
        let host = ("host", "127.0.0.1:9121");
        let from =
            |fields: &[(&'static str, &str)]| comes_from_our_page(&headers(&[&[host], fields].concat()));
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
    fn json_is_told_by_its_type_alone() {
        assert!(is_json(&headers(&[("content-type", "application/json; charset=utf-8")])));
        for other in ["text/plain", "application/x-www-form-urlencoded", "text/plain; application/json"] {
            assert!(!is_json(&headers(&[("content-type", other)])), "{other}");
        }
    }
}
