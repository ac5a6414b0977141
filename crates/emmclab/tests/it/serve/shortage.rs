//! A server that runs out of descriptors goes on when there are some again.

use std::os::unix::net::UnixStream;

use super::client::Client;
use super::{Server, card, scratch};

#[test]
fn clients_beyond_the_descriptors_wait_and_the_server_goes_on() {
    let folder = scratch("serve_shortage");
    let card = card(&folder, "card");
    let server = Server::start_with_descriptors(&card, 40);
    let mut first = server.client();
    assert_eq!(first.write(0, &[1; 4096]), 0);
    let many: Vec<UnixStream> = (0..60).map(|_| UnixStream::connect(&server.socket).unwrap()).collect();
    assert_eq!(first.read(0, 4096), (0, vec![1; 4096]), "who is there already is served");
    drop(many);
    // Refused until the server has noticed that the others are gone.
    let mut later = loop {
        if let Ok(client) = Client::try_to_connect(&server.socket) {
            break client;
        }
    };
    assert_eq!(later.read(0, 4096), (0, vec![1; 4096]));
}
