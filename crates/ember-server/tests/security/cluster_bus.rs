//! The bus between the nodes of a cluster over TLS.

use ember_testkit::{Server, free_port, wait_until};

use crate::certificates::Authority;
use crate::{MODES, builder};

/// Starts a node whose bus uses TLS with certificates of a CA; returns it with the port of its bus.
fn node(mode: &[&str], authority: &Authority) -> (Server, u16) {
    let bus_port = free_port();
    let files = authority.server_arguments(free_port(), "yes");
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let port = bus_port.to_string();
    let own = ["--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-port", &port];
    (builder(mode).arguments(&files).arguments(&own).start(), bus_port)
}

#[test]
fn nodes_with_certificates_of_one_authority_form_a_cluster_and_others_do_not_join_it() {
    for mode in MODES {
        let (authority, stranger) = (Authority::new(), Authority::new());
        let (one, bus_port) = node(mode, &authority);
        let (other, _) = node(mode, &authority);
        let meet = format!("CLUSTER MEET 127.0.0.1 {} {bus_port}", one.port());
        assert_eq!(other.client().run(&meet).text(), "OK");
        wait_until("each node lists the other", || {
            one.client().run("CLUSTER INFO").text().contains("cluster_known_nodes:2")
        });
        let (third, _) = node(mode, &stranger);
        let refused = third.client().run(&meet).text();
        assert!(refused.contains("no answer from the node"), "{refused}");
        assert!(one.client().run("CLUSTER INFO").text().contains("cluster_known_nodes:2"));
    }
}
