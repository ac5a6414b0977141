//! The start and end of servers and their sockets.

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use emmc_serve::nbd::{self, Listen, NbdOptions};

use crate::memory::Memory;
use crate::nbd::client::{Client, Folder, server};

#[test]
fn only_the_servers_own_socket_is_removed_at_the_end() {
    let (server, path, _folder) = server("removed", Memory::new(1 << 20).shared());
    assert!(path.exists());
    server.stop();
    assert!(!path.exists());

    let server = nbd::serve(Memory::new(1 << 20).shared(), &Listen::Unix(path.clone())).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _theirs = UnixListener::bind(&path).unwrap();
    server.stop();
    assert!(path.exists(), "somebody else's socket is left alone");
}

#[test]
fn only_the_socket_of_a_killed_server_is_replaced() {
    let folder = Folder::new("left-over");
    let path = folder.path("nbd");
    drop(UnixListener::bind(&path).unwrap());
    let listen = Listen::Unix(path.clone());
    let server = nbd::serve(Memory::new(1 << 20).shared(), &listen).unwrap();
    let error = nbd::serve(Memory::new(1 << 20).shared(), &listen).unwrap_err().to_string();
    assert!(error.contains("in use") && error.contains("left-over"), "{error}");
    Client::simple(&path, "user");
    server.stop();
    std::fs::write(&path, "a file").unwrap();
    nbd::serve(Memory::new(1 << 20).shared(), &listen).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");
}

#[test]
fn tcp_works_on_a_port_chosen_by_the_system() {
    let server = nbd::serve(Memory::new(1 << 20).shared(), &Listen::parse("127.0.0.1:0").unwrap()).unwrap();
    let Listen::Tcp(address) = *server.local() else { panic!("{:?}", server.local()) };
    let stream = TcpStream::connect(address).unwrap();
    assert!(address.ip().is_loopback() && address.port() != 0);
    assert_eq!(server.local().uri("boot0", false), format!("nbd://{address}/boot0"));
    server.stop();
    drop(stream);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn stopping_disconnects_idle_clients() {
    let (server, path, _folder) = server("sits", Memory::new(1 << 20).shared());
    let mut client = Client::greeted(&path);
    let mut chosen = Client::simple(&path, "user");
    let _silent = UnixStream::connect(&path).unwrap();
    server.stop();
    assert!(client.is_dropped());
    assert!(chosen.is_dropped());
}

#[test]
fn a_client_that_chooses_nothing_is_dropped_and_makes_room() {
    let folder = Folder::new("silent");
    let path = folder.path("nbd");
    let listen = Listen::Unix(path.clone());
    let options = NbdOptions { negotiation: Duration::from_secs(2), ..NbdOptions::default() };
    let server = nbd::serve_with(Memory::new(1 << 20).shared(), &listen, options).unwrap();
    let mut chosen = Client::simple(&path, "user");
    let mut greeted = Client::greeted(&path);
    let mut silent = UnixStream::connect(&path).unwrap();
    let mut sent = Vec::new();
    silent.read_to_end(&mut sent).unwrap();
    assert_eq!(sent.len(), 18, "the greeting, and then the end");
    assert!(greeted.is_dropped());
    // One that has chosen may be idle as long as it likes.
    assert_eq!(chosen.read(0, 512).unwrap().len(), 512);
    server.stop();
}

#[test]
fn addresses_are_parsed() {
    let unix = |path: &str| Ok(Listen::Unix(path.into()));
    assert_eq!(Listen::parse("/run/card.nbd"), unix("/run/card.nbd"));
    assert_eq!(Listen::parse("./nbd"), unix("./nbd"));
    assert_eq!(Listen::parse("unix:nbd"), unix("nbd"));
    for text in ["10809", ":10809", "127.0.0.1:10809"] {
        assert_eq!(Listen::parse(text), Ok(Listen::Tcp(([127, 0, 0, 1], 10809).into())));
    }
    for (text, is_local) in [("10809", true), ("[::1]:1", true), ("0.0.0.0:1", false), ("[::]:1", false), ("./s", true)]
    {
        assert_eq!(Listen::parse(text).unwrap().is_local(), is_local, "{text}");
    }
    for text in ["", "unix:", "nonsense", "70000", "127.0.0.1"] {
        assert!(Listen::parse(text).is_err(), "{text}");
    }
}
