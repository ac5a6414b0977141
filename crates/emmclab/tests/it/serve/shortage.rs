//! A server that runs out of descriptors goes on when there are some again.

use std::io::{BufRead, BufReader, Write};
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
    // A client of the control socket that comes meanwhile waits, and is answered then.
    let control = UnixStream::connect(card.join("card.socket")).unwrap();
    (&control).write_all(b"{\"do\":\"state\"}\n").unwrap();
    drop(many);
    let mut answer = String::new();
    BufReader::new(&control).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"powered\":true"), "{answer}");
    // Refused until the server has noticed that the others are gone.
    let mut later = loop {
        if let Ok(client) = Client::try_to_connect(&server.socket) {
            break client;
        }
    };
    assert_eq!(later.read(0, 4096), (0, vec![1; 4096]));
}
