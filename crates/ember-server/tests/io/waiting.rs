//! Connections that wait for the end of CLIENT PAUSE, or for replies of other workers: no request is lost or reordered.

use crate::{MODES, assert_same, encode, start, together, wait_until};

#[test]
fn a_paused_pipeline_resumes_where_it_stopped() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut control = server.client();
        let (mut request, mut expected) = (Vec::new(), Vec::new());
        for number in 0..2000 {
            let key = format!("k{number}");
            request.extend(
                [encode(&["GET", &key]), encode(&["SET", &key, "v"]), encode(&["MGET", &key])].concat(),
            );
            expected.extend_from_slice(b"$-1\r\n+OK\r\n*1\r\n$1\r\nv\r\n");
        }
        control.run("CLIENT PAUSE 100000 WRITE");
        let mut client = server.client();
        client.send(&request[..30_000]).unwrap();
        // Reads before the first write receive replies.
        assert_eq!(client.read_bytes(5).unwrap(), b"$-1\r\n");
        wait_until("the client is paused", || control.run("CLIENT LIST").text().contains("flags=b"));
        client.send(&request[30_000..]).unwrap();
        assert_eq!(control.run("GET k0").text(), "");
        control.run("CLIENT UNPAUSE");
        assert_same(&client.read_bytes(expected.len() - 5).unwrap(), &expected[5..], &format!("{mode:?}"));

        // The pause ends when its time is over.
        control.run("CLIENT PAUSE 50 ALL");
        client.send(&request[..request.len() / 2]).unwrap();
        assert_eq!(client.read_raw().unwrap(), b"$1\r\nv\r\n", "{mode:?}");
    }
}

#[test]
fn paused_and_closed_connections_do_not_disturb_later_ones() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut control = server.client();
        for round in 0..30 {
            control.run("CLIENT PAUSE 100000 WRITE");
            for _ in 0..4 {
                let mut leaving = server.client();
                leaving.send(&encode(&["SET", "x", "1"])).unwrap();
            }
            control.run("CLIENT UNPAUSE");
            // The new connections may receive the descriptors of the closed ones while these are still recorded as
            // paused.
            let request: Vec<u8> =
                (0..300).flat_map(|n| encode(&["MGET", &format!("a{n}"), &format!("b{n}")])).collect();
            let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
            clients.iter_mut().for_each(|client| client.send(&request).unwrap());
            for client in &mut clients {
                let expected = b"*2\r\n$-1\r\n$-1\r\n".repeat(300);
                assert_same(
                    &client.read_bytes(expected.len()).unwrap(),
                    &expected,
                    &format!("{mode:?} {round}"),
                );
            }
        }
    }
}

#[test]
fn each_connection_has_a_separate_protocol() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut resp3: Vec<_> = (0..4).map(|_| server.client()).collect();
        let mut resp2: Vec<_> = (0..4).map(|_| server.client()).collect();
        resp3.iter_mut().for_each(|client| assert!(!client.run("HELLO 3").is_error()));
        let request: Vec<u8> = (0..50).flat_map(|n| encode(&["GET", &format!("none{n}")])).collect();
        for _ in 0..20 {
            for (two, three) in resp2.iter_mut().zip(&mut resp3) {
                two.send(&request).unwrap();
                three.send(&request).unwrap();
                assert_same(&two.read_bytes(250).unwrap(), &b"$-1\r\n".repeat(50), &format!("{mode:?}"));
                assert_same(&three.read_bytes(150).unwrap(), &b"_\r\n".repeat(50), &format!("{mode:?}"));
            }
        }
    }
}
