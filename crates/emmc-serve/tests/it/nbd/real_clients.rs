//! Real clients: libnbd's tools, QEMU's tools, fio.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use emmc_card::device::Area;
use emmc_units::Rng;

use crate::memory::Memory;
use crate::nbd::client::{Folder, server};

/// The standard output of a program; `None`, with a message, if it is not installed.
fn run(program: &str, args: &[&str]) -> Option<String> {
    match Command::new(program).args(args).stdin(Stdio::null()).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: {program} is not installed (./setup --tests)");
            None
        }
        Err(error) => panic!("{program}: {error}"),
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {args:?}: {}\n{error}", output.status);
            Some(String::from_utf8(output.stdout).unwrap())
        }
    }
}

fn uri(path: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", path.display())
}

/// Bytes that do not repeat, with a hole in the middle.
pub(crate) fn image(folder: &Folder, bytes: usize) -> (PathBuf, Vec<u8>) {
    let mut rng = Rng::new(1);
    let mut data: Vec<u8> = std::iter::repeat_with(|| rng.next_u64() as u8).take(bytes).collect();
    data[bytes / 2..bytes / 2 + (1 << 20)].fill(0);
    let path = folder.path("image");
    std::fs::File::create(&path).unwrap().write_all(&data).unwrap();
    (path, data)
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    let mut data = Vec::new();
    std::fs::File::open(path).unwrap().read_to_end(&mut data).unwrap();
    data
}

#[test]
fn nbdinfo_lists_all_exports() {
    let (_server, path, _folder) = server("nbdinfo", Memory::new(64 << 20).shared());
    let Some(list) = run("nbdinfo", &["--list", "--json", &uri(&path, "")]) else { return };
    for name in ["user", "boot0", "boot1"] {
        assert!(list.contains(&format!("\"export-name\": \"{name}\"")), "{list}");
    }
    let Some(one) = run("nbdinfo", &["--json", &uri(&path, "user")]) else { return };
    for expected in [
        "\"protocol\": \"newstyle-fixed\"",
        "\"structured\": true",
        "\"export-size\": 67108864",
        "\"base:allocation\"",
        "\"can_multi_conn\": true",
        "\"can_trim\": true",
        "\"can_zero\": true",
        "\"can_fast_zero\": true",
        "\"can_fua\": true",
        "\"can_flush\": true",
        "\"can_df\": true",
        "\"can_cache\": false",
        "\"is_read_only\": false",
        "\"block_size_minimum\": 512",
        "\"block_size_preferred\": 4096",
        "\"block_size_maximum\": 33554432",
    ] {
        assert!(one.contains(expected), "expected {expected} in\n{one}");
    }
    let Some(map) = run("nbdinfo", &["--map", &uri(&path, "user")]) else { return };
    assert_eq!(map.split_whitespace().collect::<Vec<_>>(), ["0", "67108864", "3", "hole,zero"]);
}

#[test]
fn nbdcopy_reads_and_writes() {
    let memory = Memory::new(64 << 20).shared();
    let (_server, path, folder) = server("nbdcopy", memory.clone());
    let (from, data) = image(&folder, 64 << 20);
    let Some(_) = run("nbdcopy", &["--flush", from.to_str().unwrap(), &uri(&path, "")]) else { return };
    assert!(memory.content(Area::User) == data);
    assert!(memory.count("flush") > 0);
    let back = folder.path("back");
    run("nbdcopy", &["--connections=4", "--requests=32", &uri(&path, ""), back.to_str().unwrap()]);
    assert!(read(&back) == data);
}

#[test]
fn qemu_reads_writes_and_trims() {
    let memory = Memory::new(64 << 20).shared();
    let (_server, path, folder) = server("qemu", memory.clone());
    let (from, data) = image(&folder, 64 << 20);
    let (from, user) = (from.to_str().unwrap(), uri(&path, "user"));
    let Some(_) = run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", from, &user]) else { return };
    assert!(memory.content(Area::User) == data);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", from, &user]);
    let back = folder.path("back");
    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &user, back.to_str().unwrap()]);
    assert!(read(&back) == data);
    let map = run("qemu-img", &["map", "--output=json", "-f", "raw", &user]).unwrap();
    assert!(map.contains("\"zero\": true, \"data\": false"), "{map}");
    let commands = ["write -P 0x5a 0 1M", "write -f -P 0x33 1M 64k", "write -z -u 2M 1M", "write -z 3M 1M", "flush"];
    let checks = ["discard 4M 8M", "read -P 0x5a 0 1M", "read -P 0x33 1M 64k", "read -P 0 2M 10M"];
    let mut args = vec!["-f", "raw", "-d", "unmap"];
    commands.iter().chain(&checks).for_each(|command| args.extend(["-c", command]));
    args.push(&user);
    let Some(told) = run("qemu-io", &args) else { return };
    assert!(!told.contains("failed"), "{told}");
    assert!(memory.count("trim") > 0 && memory.count("zero") > 0);
}

/// fio's own verification of its writes, over its NBD engine.
fn fio(path: &Path, name: &str, offset: u64, extra: &[&str]) -> Option<std::process::Child> {
    let engines = run("fio", &["--enghelp"])?;
    if !engines.split_whitespace().any(|engine| engine == "nbd") {
        eprintln!("SKIPPED: this fio has no NBD engine");
        return None;
    }
    let uri = format!("--uri={}", uri(path, "user"));
    let (name, offset) = (format!("--name={name}"), format!("--offset={offset}"));
    let mut command = Command::new("fio");
    command.args([
        "--ioengine=nbd",
        "--size=24M",
        "--iodepth=16",
        "--verify=sha256",
        "--verify_state_save=0",
        "--do_verify=1",
        "--verify_fatal=1",
    ]);
    command.args([&name, &uri, &offset]).args(extra).current_dir(path.parent().unwrap());
    Some(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
}

#[test]
fn two_concurrent_fio_verify_their_writes() {
    let memory = Memory::new(64 << 20).shared();
    let (_server, path, _folder) = server("fio", memory.clone());
    let one = fio(&path, "one", 0, &["--rw=randwrite", "--bs=4k"]);
    let Some(mut one) = one else { return };
    let mut other = fio(&path, "other", 32 << 20, &["--rw=write", "--bs=1M"]).unwrap();
    assert!(one.wait().unwrap().success());
    assert!(other.wait().unwrap().success());
    let content = memory.content(Area::User);
    assert!(content[..24 << 20].chunks(4096).all(|unit| unit.iter().any(|byte| *byte != 0)));
    assert!(content[24 << 20..32 << 20].iter().all(|byte| *byte == 0), "nobody wrote between them");
}
