//! NBD over TLS: with libnbd's and QEMU's clients, with certificates and keys; and attacks on its start.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use emmc_card::device::Area;
use emmc_serve::nbd::option::{self, reply};
use emmc_serve::nbd::{self, Credentials, Listen, NbdOptions, NbdServer, Tls};
use openssl::ssl::{SslConnector, SslMethod, SslStream, SslVerifyMode};

use crate::memory::Memory;
use crate::nbd::client::{Client, Folder, info_query, meta_query};
use crate::nbd::real_clients::{image, read};

/// Whether a program succeeds, and all that it prints; `None`, with a message, if it is not installed.
fn attempt(program: &str, args: &[&str]) -> Option<(bool, String)> {
    match Command::new(program).args(args).stdin(Stdio::null()).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: {program} is not installed (./setup --tests)");
            None
        }
        Err(error) => panic!("{program}: {error}"),
        Ok(output) => {
            let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            Some((output.status.success(), format!("{program} {args:?}: {}\n{told}{error}", output.status)))
        }
    }
}

fn run(program: &str, args: &[&str]) -> Option<String> {
    attempt(program, args).map(|(succeeds, told)| {
        assert!(succeeds, "{told}");
        told
    })
}

fn refused(program: &str, args: &[&str]) {
    if let Some((succeeds, told)) = attempt(program, args) {
        assert!(!succeeds, "{told}");
    }
}

/// A folder with an authority, and a certificate of it for a server and for a client; `None` without `certtool`.
fn certificates(folder: &Folder, name: &str) -> Option<PathBuf> {
    let at = folder.path(name);
    std::fs::create_dir_all(&at).unwrap();
    let path = |file: &str| at.join(file).display().to_string();
    let certificate = |who: &str, template: &str, of: &[&str]| {
        let (key, config) = (path(&format!("{who}-key.pem")), path("template"));
        std::fs::write(&config, format!("expiration_days = 2\n{template}\n")).unwrap();
        run("certtool", &["--generate-privkey", "--key-type=ecdsa", "--curve=secp256r1", "--outfile", &key])?;
        let out = path(&format!("{who}-cert.pem"));
        let all = [of, &["--load-privkey", &key, "--template", &config, "--outfile", &out]].concat();
        run("certtool", &all)
    };
    certificate("ca", "cn = CA\nca\ncert_signing_key\ncrl_signing_key", &["--generate-self-signed"])?;
    let (authority, key) = (path("ca-cert.pem"), path("ca-key.pem"));
    let signed = ["--generate-certificate", "--load-ca-certificate", &authority, "--load-ca-privkey", &key];
    let server = "cn = localhost\ndns_name = localhost\nip_address = 127.0.0.1\ntls_www_server\nsigning_key";
    certificate("server", server, &signed)?;
    certificate("client", "cn = client\ntls_www_client\nsigning_key", &signed)?;
    Some(at)
}

/// A server with TLS at a port of loopback.
fn server(memory: &Arc<Memory>, credentials: &Credentials, is_required: bool) -> (NbdServer, u16) {
    let (tls, warnings) = Tls::load(credentials, is_required).unwrap();
    assert_eq!(warnings, [""; 0]);
    let options =
        NbdOptions { tls: Some(Arc::new(tls)), negotiation: Duration::from_secs(60), ..NbdOptions::default() };
    let listen = Listen::parse("127.0.0.1:0").unwrap();
    let server = nbd::serve_with(memory.clone(), &listen, options).unwrap();
    let Listen::Tcp(address) = *server.local() else { panic!("{:?}", server.local()) };
    (server, address.port())
}

fn of_folder(folder: &Path, verify_clients: bool) -> Credentials {
    Credentials::Certificates { folder: folder.to_owned(), verify_clients }
}

/// An image is copied there and back by each program, and compared.
fn copy_by_all(memory: &Memory, folder: &Folder, uri: &str, qemu: [&str; 3]) {
    let (from, data) = image(folder, 8 << 20);
    let (from, back) = (from.display().to_string(), folder.path("back"));
    let to = back.display().to_string();
    if run("nbdcopy", &["--flush", &from, uri]).is_some() {
        assert!(memory.content(Area::User)[..8 << 20] == data);
        run("nbdcopy", &["--connections=2", "--requests=16", uri, &to]).unwrap();
        assert!(read(&back)[..8 << 20] == data);
    }
    if let Some(told) = run("nbdinfo", &["--json", uri]) {
        assert!(told.contains("\"TLS\": true") && told.contains("\"structured\": true"), "{told}");
    }
    let [object, target, options] = qemu;
    let convert = ["convert", "-n", "-f", "raw", "--object", object, "--target-image-opts", &from, target];
    if run("qemu-img", &convert).is_some() {
        run(
            "qemu-img",
            &["compare", "--object", object, "--image-opts", &format!("driver=file,filename={from}"), options],
        )
        .unwrap();
    }
    let commands = ["-c", "write -P 0x5a 0 1M", "-c", "flush", "-c", "read -P 0x5a 0 1M"];
    let qemu_io = [&["--object", object, "--image-opts", options][..], &commands].concat();
    if let Some(told) = run("qemu-io", &qemu_io) {
        assert!(!told.contains("failed") && memory.content(Area::User)[..1 << 20] == [0x5a; 1 << 20], "{told}");
    }
}

#[test]
fn certificates_protect_and_wrong_ones_are_refused() {
    let folder = Folder::new("tls-certificates");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let theirs = certificates(&folder, "theirs").unwrap();
    let memory = Memory::new(8 << 20).shared();
    let (server, port) = server(&memory, &of_folder(&ours, true), true);
    let uri = |folder: &Path| format!("nbds://localhost:{port}/user?tls-certificates={}", folder.display());
    let object = |folder: &Path| format!("tls-creds-x509,id=tls0,endpoint=client,dir={}", folder.display());
    let image = format!("driver=nbd,host=localhost,port={port},export=user,tls-creds=tls0");
    let target =
        format!("driver=raw,file.driver=nbd,file.host=localhost,file.port={port},file.export=user,file.tls-creds=tls0");
    copy_by_all(&memory, &folder, &uri(&ours), [&object(&ours), &target, &image]);
    let written = memory.count("write");

    // Another authority's, on both sides: the client does not trust the server.
    refused("nbdinfo", &[&uri(&theirs)]);
    refused("qemu-io", &["--object", &object(&theirs), "--image-opts", &image, "-c", "write 0 1M"]);
    // The client trusts the server, but has another authority's certificate, or none.
    let mixed = folder.path("mixed");
    std::fs::create_dir_all(&mixed).unwrap();
    let copy = |from: &Path, name: &str| std::fs::copy(from.join(name), mixed.join(name)).unwrap();
    copy(&ours, "ca-cert.pem");
    refused("nbdinfo", &[&uri(&mixed)]);
    copy(&theirs, "client-cert.pem");
    copy(&theirs, "client-key.pem");
    refused("nbdinfo", &[&uri(&mixed)]);
    let plain = format!("nbd://localhost:{port}/user");
    refused("nbdinfo", &[&plain]);
    refused("qemu-io", &["-f", "raw", "-c", "write 0 1M", &plain]);
    assert_eq!(memory.count("write"), written, "whoever is refused changes nothing");
    // The next one is served all the same.
    run("nbdinfo", &["--size", &uri(&ours)]);
    server.stop();
}

#[test]
fn a_revoked_certificate_is_refused() {
    let folder = Folder::new("tls-revoked");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let path = |name: &str| ours.join(name).display().to_string();
    std::fs::write(ours.join("template"), "expiration_days = 2\ncrl_next_update = 2\ncrl_number = 1\n").unwrap();
    let (authority, key, crl) = (path("ca-cert.pem"), path("ca-key.pem"), path("ca-crl.pem"));
    let signer = ["--generate-crl", "--load-ca-certificate", &authority, "--load-ca-privkey", &key];
    let (template, client) = (path("template"), path("client-cert.pem"));
    let memory = Memory::new(1 << 20).shared();
    for is_revoked in [false, true] {
        let revoked = if is_revoked { vec!["--load-certificate", client.as_str()] } else { vec![] };
        run("certtool", &[&signer[..], &["--template", &template, "--outfile", &crl], &revoked].concat()).unwrap();
        let (server, port) = server(&memory, &of_folder(&ours, true), true);
        let uri = format!("nbds://localhost:{port}/?tls-certificates={}", ours.display());
        let Some((succeeds, told)) = attempt("nbdinfo", &["--size", &uri]) else { return };
        // With TLS 1.3 a client learns of it with its next read.
        assert_eq!(succeeds, !is_revoked, "{told}");
        server.stop();
    }
}

#[test]
fn keys_protect_and_wrong_ones_are_refused() {
    let folder = Folder::new("tls-keys");
    let (keys, others) = (folder.path("keys.psk"), folder.path("other/keys.psk"));
    std::fs::create_dir_all(folder.path("other")).unwrap();
    for path in [&keys, &others] {
        if run("psktool", &["-u", "alice", "-p", &path.display().to_string()]).is_none() {
            return;
        }
    }
    let memory = Memory::new(8 << 20).shared();
    let (server, port) = server(&memory, &Credentials::Keys(keys.clone()), true);
    let uri = |user: &str, keys: &Path| format!("nbds://{user}@localhost:{port}/user?tls-psk-file={}", keys.display());
    let object = |user: &str, keys: &Path| {
        let folder = keys.parent().unwrap().display().to_string();
        format!("tls-creds-psk,id=tls0,endpoint=client,username={user},dir={folder}")
    };
    let image = format!("driver=nbd,host=localhost,port={port},export=user,tls-creds=tls0");
    let target =
        format!("driver=raw,file.driver=nbd,file.host=localhost,file.port={port},file.export=user,file.tls-creds=tls0");
    copy_by_all(&memory, &folder, &uri("alice", &keys), [&object("alice", &keys), &target, &image]);
    let written = memory.count("write");
    refused("nbdinfo", &[&uri("alice", &others)]);
    refused("qemu-io", &["--object", &object("alice", &others), "--image-opts", &image, "-c", "write 0 1M"]);
    // A user of another file, whom the server does not know.
    run("psktool", &["-u", "mallory", "-p", &others.display().to_string()]).unwrap();
    refused("nbdinfo", &[&uri("mallory", &others)]);
    refused("nbdinfo", &[&format!("nbd://localhost:{port}/user")]);
    assert_eq!(memory.count("write"), written);
    run("nbdinfo", &["--size", &uri("alice", &keys)]);
    server.stop();
}

/// A client that sends exactly the bytes of a test, before and after TLS.
struct Raw<S>(S);

impl<S: Read + Write> Raw<S> {
    fn send(&mut self, number: u32, data: &[u8]) {
        let header =
            [&option::OPTION_MAGIC.to_be_bytes()[..], &number.to_be_bytes(), &(data.len() as u32).to_be_bytes()];
        self.0.write_all(&[&header.concat(), data].concat()).unwrap();
    }

    /// The kind of the next reply, and its data.
    fn next(&mut self) -> (u32, Vec<u8>) {
        let mut head = [0; 20];
        self.0.read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let mut data = vec![0; word(16) as usize];
        self.0.read_exact(&mut data).unwrap();
        (word(12), data)
    }

    fn ask(&mut self, number: u32, data: &[u8]) -> u32 {
        self.send(number, data);
        loop {
            let (kind, _) = self.next();
            if kind == reply::ACK || kind >> 31 == 1 {
                return kind;
            }
        }
    }

    fn is_dropped(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).is_err() || rest.first().is_none_or(|first| *first == 21)
    }
}

fn greeted(port: u16) -> Raw<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(&3u32.to_be_bytes()).unwrap();
    Raw(stream)
}

/// From the acknowledged option on; without a check of the server's certificate.
fn secured(mut plain: Raw<TcpStream>) -> Raw<SslStream<TcpStream>> {
    assert_eq!(plain.ask(5, b""), reply::ACK);
    let mut connector = SslConnector::builder(SslMethod::tls()).unwrap();
    connector.set_verify(SslVerifyMode::NONE);
    Raw(connector.build().connect("localhost", plain.0).unwrap())
}

#[test]
fn without_tls_only_its_start_and_an_abort_are_accepted() {
    let folder = Folder::new("tls-required");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let memory = Memory::new(1 << 20).shared();
    let (server, port) = server(&memory, &of_folder(&ours, false), true);
    let mut client = greeted(port);
    for (number, data) in [(3, vec![]), (6, info_query("user", &[])), (7, info_query("user", &[])), (8, vec![])] {
        assert_eq!(client.ask(number, &data), reply::ERR_TLS_REQD, "option {number}");
    }
    assert_eq!(client.ask(10, &meta_query("user", &["base:allocation"])), reply::ERR_TLS_REQD);
    assert_eq!(client.ask(4711, b"x"), reply::ERR_TLS_REQD);
    assert_eq!(client.ask(5, b"x"), reply::ERR_INVALID, "the option has no data");
    assert_eq!(client.ask(2, b""), reply::ACK);
    assert!(client.is_dropped());
    // The old option has no error reply.
    let mut client = greeted(port);
    client.send(1, b"user");
    assert!(client.is_dropped());
    server.stop();
}

#[test]
fn nothing_from_before_tls_counts_after_it() {
    let folder = Folder::new("tls-reset");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let memory = Memory::new(1 << 20).shared();
    let (server, port) = server(&memory, &of_folder(&ours, false), false);
    // Offered, so a client without TLS is served.
    let mut plain = greeted(port);
    assert_eq!(plain.ask(7, &info_query("user", &[])), reply::ACK);
    let mut client = greeted(port);
    assert_eq!(client.ask(8, b""), reply::ACK);
    assert_eq!(client.ask(10, &meta_query("user", &["base:allocation"])), reply::ACK);
    let mut client = secured(client);
    assert_eq!(client.ask(5, b""), reply::ERR_INVALID, "TLS within TLS");
    let contexts = meta_query("user", &["base:allocation"]);
    assert_eq!(client.ask(10, &contexts), reply::ERR_INVALID, "structured replies are forgotten");
    assert_eq!(client.ask(8, b""), reply::ACK);
    assert_eq!(client.ask(10, &contexts), reply::ACK);
    assert_eq!(client.ask(7, &info_query("user", &[])), reply::ACK);
    server.stop();
    assert!(client.is_dropped());
}

/// What a third party puts into the stream before TLS must not be taken for the client's.
#[test]
fn injected_plaintext_is_never_answered() {
    let folder = Folder::new("tls-injected");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let memory = Memory::new(1 << 20).shared();
    for is_required in [false, true] {
        let (server, port) = server(&memory, &of_folder(&ours, false), is_required);
        let mut client = greeted(port);
        let header = |number: u32| [&option::OPTION_MAGIC.to_be_bytes()[..], &number.to_be_bytes(), &[0; 4]].concat();
        client.0.write_all(&[header(5), header(8), header(3)].concat()).unwrap();
        assert_eq!(client.next(), (reply::ACK, vec![]));
        // At most an alert of TLS (21), and then the end.
        assert!(client.is_dropped());
        server.stop();
    }
}

#[test]
fn the_time_of_the_negotiation_holds_in_tls_too() {
    let folder = Folder::new("tls-silent");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let (tls, _) = Tls::load(&of_folder(&ours, false), true).unwrap();
    let options = NbdOptions { tls: Some(Arc::new(tls)), negotiation: Duration::from_secs(6), ..NbdOptions::default() };
    let listen = Listen::parse("127.0.0.1:0").unwrap();
    let server = nbd::serve_with(Memory::new(1 << 20).shared(), &listen, options).unwrap();
    let Listen::Tcp(address) = *server.local() else { panic!("{:?}", server.local()) };
    let begun = Instant::now();
    // One says nothing after the option, one half a message of TLS, one nothing after the handshake.
    let mut silent = greeted(address.port());
    assert_eq!(silent.ask(5, b""), reply::ACK);
    let mut half = greeted(address.port());
    assert_eq!(half.ask(5, b""), reply::ACK);
    half.0.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    let mut idle = secured(greeted(address.port()));
    assert!(silent.is_dropped() && half.is_dropped() && idle.is_dropped());
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    server.stop();
}

#[test]
fn a_client_that_takes_no_replies_does_not_stop_the_end() {
    let folder = Folder::new("tls-hog");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let memory = Memory::new(32 << 20).shared();
    let (server, port) = server(&memory, &of_folder(&ours, false), true);
    let mut client = secured(greeted(port));
    assert_eq!(client.ask(7, &info_query("user", &[])), reply::ACK);
    for cookie in 0..64u64 {
        let head =
            [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0][..], &cookie.to_be_bytes(), &[0; 8], &(16u32 << 20).to_be_bytes()];
        client.0.write_all(&head.concat()).unwrap();
    }
    // The first of them has come.
    client.0.read_exact(&mut [0; 16]).unwrap();
    server.stop();
}

#[test]
fn tls_works_at_a_unix_socket() {
    let folder = Folder::new("tls-unix");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let (tls, _) = Tls::load(&of_folder(&ours, false), true).unwrap();
    let path = folder.path("nbd");
    let options = NbdOptions { tls: Some(Arc::new(tls)), ..NbdOptions::default() };
    let listen = Listen::Unix(path.clone());
    let server = nbd::serve_with(Memory::new(1 << 20).shared(), &listen, options).unwrap();
    assert_eq!(server.local().uri("user", true), format!("nbds+unix:///user?socket={}", path.display()));
    let uri = format!("{}&tls-certificates={}", server.local().uri("user", true), ours.display());
    run("nbdinfo", &["--size", &uri]);
    let mut plain = Client::greeted(&path);
    assert_eq!(plain.option(3, b"")[0].0, reply::ERR_TLS_REQD);
    server.stop();
}

#[test]
fn files_that_are_no_credentials_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("tls-files");
    let Some(ours) = certificates(&folder, "ours") else { return };
    let theirs = certificates(&folder, "theirs").unwrap();
    let error = |credentials: &Credentials| Tls::load(credentials, true).unwrap_err().to_string();
    let missing = error(&of_folder(&folder.path("nowhere"), false));
    assert!(missing.contains("nowhere/server-cert.pem") && missing.contains("No such file"), "{missing}");
    let key = ours.join("server-key.pem");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let (_, warnings) = Tls::load(&of_folder(&ours, true), true).unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("server-key.pem: others can read this key (mode 0644"));
    std::fs::copy(theirs.join("server-key.pem"), &key).unwrap();
    assert!(error(&of_folder(&ours, false)).contains("server-key.pem: is not the key of the certificate"));
    std::fs::write(&key, "nonsense").unwrap();
    assert!(error(&of_folder(&ours, false)).contains("server-key.pem: expected a private key in PEM"));
    std::fs::write(theirs.join("ca-cert.pem"), "nonsense").unwrap();
    assert!(error(&of_folder(&theirs, true)).contains("ca-cert.pem: expected a certificate in PEM"));
    let keys = folder.path("keys");
    std::fs::write(&keys, "alice:00").unwrap();
    assert!(error(&Credentials::Keys(keys)).contains("keys: line 1: a key of 1 bytes; expected 16 to 256"));
}
