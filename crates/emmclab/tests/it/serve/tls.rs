//! `serve --nbd` with TLS through the binary, with the clients of libnbd and QEMU.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Server, card, first_document, scratch};
use crate::support::cards::noise;
use crate::support::loops::succeeds;
use crate::support::{emmclab, save, skip};

/// An authority, and its certificates for a server and a client; `None` without `certtool`.
fn certificates(folder: &Path) -> Option<PathBuf> {
    let at = folder.join("pki");
    std::fs::create_dir_all(&at).unwrap();
    let path = |name: &str| at.join(name).display().to_string();
    let authority = ["--load-ca-certificate", &path("ca-cert.pem"), "--load-ca-privkey", &path("ca-key.pem")].join(" ");
    let of = format!("--generate-certificate {authority}");
    for (who, kind, lines) in [
        ("ca", "--generate-self-signed", "cn = CA\nca\ncert_signing_key"),
        ("server", &of, "cn = localhost\ndns_name = localhost\nip_address = 127.0.0.1\ntls_www_server\nsigning_key"),
        ("client", &of, "cn = client\ntls_www_client\nsigning_key"),
    ] {
        let template = save(&at, "template", format!("expiration_days = 2\n{lines}\n"));
        let (key, out) = (path(&format!("{who}-key.pem")), path(&format!("{who}-cert.pem")));
        let made = succeeds("sh", &["-c", &format!("umask 077; certtool --generate-privkey --outfile {key} 2>&1")])
            && succeeds(
                "sh",
                &["-c", &format!("certtool {kind} --load-privkey {key} --template {template} --outfile {out} 2>&1")],
            );
        if !made {
            skip("no certtool (./setup --tests)");
            return None;
        }
    }
    Some(at)
}

/// A server at a port of loopback, and the port.
fn server(card: &Path, more: &[&str]) -> (Server, u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_emmclab"))
        .args(["serve", card.to_str().unwrap(), "--nbd", "127.0.0.1:0", "--no-delay", "--json"])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let document = first_document(&mut child);
    let uri = document["fronts"][0]["exports"][0]["uri"].as_str().unwrap().to_owned();
    let port = uri.split(':').nth(2).and_then(|rest| rest.split('/').next()).and_then(|port| port.parse().ok());
    let port = port.unwrap_or_else(|| panic!("{uri}: no port"));
    assert!(uri.starts_with("nbds:"), "{uri}");
    (Server { child, socket: PathBuf::new(), document }, port)
}

#[test]
fn an_image_goes_there_and_back_over_tls_and_nothing_without() {
    let folder = scratch("serve_tls");
    let Some(pki) = certificates(&folder) else { return };
    let card = card(&folder, "card");
    let pki = pki.display().to_string();
    let (server, port) = server(&card, &["--tls-certificates", &pki, "--tls-verify-peer", "--tls", "require"]);
    let (image, back) = (folder.join("image"), folder.join("back"));
    std::fs::write(&image, noise(1, 16 << 20)).unwrap();
    let [image, back] = [&image, &back].map(|path| path.to_str().unwrap());
    let uri = format!("nbds://localhost:{port}/user?tls-certificates={pki}");
    if succeeds("nbdinfo", &["--version"]) {
        assert!(succeeds("nbdinfo", &["--size", &uri]));
        assert!(succeeds("nbdcopy", &["--flush", image, &uri]));
        assert!(succeeds("nbdcopy", &[&uri, back]));
        assert!(std::fs::read(back).unwrap() == std::fs::read(image).unwrap());
        assert!(!succeeds("nbdinfo", &["--size", &format!("nbd://localhost:{port}/user")]), "without TLS");
    } else {
        skip("no nbdinfo (./setup --tests)");
    }
    if succeeds("qemu-img", &["--version"]) {
        let object = format!("tls-creds-x509,id=tls0,endpoint=client,dir={pki}");
        let nbd = format!("driver=nbd,host=localhost,port={port},export=user,tls-creds=tls0");
        let file = format!("driver=file,filename={image}");
        assert!(succeeds("qemu-img", &["compare", "--object", &object, "--image-opts", &file, &nbd]));
        let plain = format!("driver=nbd,host=localhost,port={port},export=user");
        assert!(!succeeds("qemu-img", &["compare", "--image-opts", &file, &plain]), "without TLS");
    } else {
        skip("no qemu-img (./setup --tests)");
    }
    drop(server);
}

#[test]
fn credentials_that_do_not_fit_are_refused_in_one_line() {
    let folder = scratch("serve_tls_wrong");
    let card = card(&folder, "card").display().to_string();
    let nowhere = folder.join("nowhere").display().to_string();
    for more in [&["--tls-certificates", nowhere.as_str()][..], &["--tls-psk", &nowhere]] {
        let run = emmclab(["serve", &card, "--nbd", "127.0.0.1:0"].iter().chain(more)).exits(2);
        assert!(run.stderr.contains("nowhere") && run.stderr.lines().count() == 1, "{}", run.stderr);
    }
}
