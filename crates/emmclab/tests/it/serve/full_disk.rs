//! A full disk: the client gets an error, and no acknowledged data is lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Server, card, emmclab, scratch};

/// A small filesystem of our own; unmounted when it is dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(at: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at).output();
        let mounted = mounted.ok()?.status.success();
        mounted.then(|| Self(at.into()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_loses_no_acknowledged_data() {
    let folder = scratch("serve_full_disk");
    let Some(disk) = Tmpfs::mount(&folder.join("disk"), "6m") else {
        eprintln!("skipped: a tmpfs cannot be mounted here (root is needed)");
        return;
    };
    let card = card(&disk.0, "card");
    let server = Server::start(&card);
    let mut client = server.client();
    let mut errors = 0;
    let blocks: Vec<(u64, u8)> = (0..2500u64).map(|block| (block, (block % 251) as u8 + 1)).collect();
    let mut acknowledged = Vec::new();
    for &(block, byte) in &blocks {
        match client.write(block * 4096, &[byte; 4096]) {
            0 => acknowledged.push((block, byte)),
            _ => errors += 1,
        }
    }
    assert!(errors > 0 && acknowledged.len() > 1000, "{errors} errors, {} acknowledged", acknowledged.len());
    let (last, last_byte) = acknowledged[acknowledged.len() - 1];
    assert_eq!(client.read(last * 4096, 4096), (0, vec![last_byte; 4096]), "reads go on");
    server.kill();
    // Without space it still starts: acknowledged data can be read, writes fail, and another kill loses no data.
    for _ in 0..2 {
        let server = Server::start(&card);
        assert_eq!(server.document["waits_for_room"], true);
        let mut client = server.client();
        assert_eq!(client.read(last * 4096, 4096), (0, vec![last_byte; 4096]));
        assert_ne!(client.write(last * 4096, &[0; 4096]), 0);
        server.kill();
    }
    let server = Server::start_with_room(&card, &disk.0);
    assert_eq!(server.document["waits_for_room"], false);
    let mut client = server.client();
    for &(block, byte) in &acknowledged {
        assert_eq!(client.read(block * 4096, 4096), (0, vec![byte; 4096]), "block {block}");
    }
    // With space again writes continue.
    assert_eq!(client.write(0, &[9; 4096]), 0);
    drop((client, server));
    // Also if space becomes free while it is served; an orderly end without space leaves the card unchanged.
    let resize = |size: &str| {
        let mount = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&disk.0).status();
        assert!(mount.unwrap().success());
    };
    let filler = disk.0.join("filler");
    let fill = || {
        let mut file = std::fs::File::create(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
    };
    fill();
    let name = card.display().to_string();
    let server = Server::start(&card);
    assert_eq!(server.document["waits_for_room"], true);
    emmclab(["sim", "ctl", &name, "stop"]).exits(0);
    drop(server);
    let server = Server::start(&card);
    let mut client = server.client();
    assert_ne!(client.write(0, &[8; 4096]), 0);
    resize("128m");
    assert_eq!((client.write(0, &[8; 4096]), client.read(0, 4096)), (0, (0, vec![8; 4096])));
    server.kill();
    assert_eq!(Server::start(&card).client().read(0, 4096), (0, vec![8; 4096]));
}

impl Server {
    /// The same after space was freed on the disk.
    fn start_with_room(card: &Path, disk: &Path) -> Self {
        let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(disk).status().unwrap();
        assert!(grown.success());
        Self::start(card)
    }
}
