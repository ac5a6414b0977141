//! `monitor`: its line, its log, and its metrics in a real Prometheus.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::keys;
#[cfg(feature = "bench")]
use crate::support::loops::{Loop, succeeds};
use crate::support::{Run, emmclab, names_in, save, scratch, skip, testdata};

const AT: &str = "2026-11-22T03:10:00Z";

fn contrib(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/monitor").join(name).display().to_string()
}

fn complains(run: Run, text: &str) {
    assert!(run.stderr.contains(text), "{}: {text} is not in {}", run.args, run.stderr);
}

/// A copy of the board's tree with another register byte.
fn worn_board(folder: &Path, life: &str) -> String {
    let root = folder.join("board");
    let copied = Command::new("cp").args(["-a", &testdata("sysfs/board"), root.to_str().unwrap()]).status();
    assert!(copied.unwrap().success());
    // The attribute of sysfs counts where debugfs is not mounted.
    std::fs::remove_dir_all(root.join("sys/kernel/debug")).unwrap();
    let card = "sys/devices/platform/soc/2194000.mmc/mmc_host/mmc0/mmc0:0001";
    std::fs::write(root.join(card).join("life_time"), life).unwrap();
    root.display().to_string()
}

#[test]
fn every_line_is_short_and_keeps_its_keys() {
    let board = testdata("sysfs/board");
    let machine = emmclab(["monitor", "--sysroot", &board, "--at", AT, "--once", "--ndjson"]).exits(0).stdout;
    let one = emmclab(["monitor", "--sysroot", &board, "mmcblk0p1", "--at", AT, "--once", "--ndjson"]).exits(0).stdout;
    assert_eq!(machine.lines().count(), 2);
    assert_eq!(machine.lines().next(), one.lines().next(), "a partition is its card");
    let saved = testdata("seeds_console/extcsd_health.txt");
    let saved = emmclab(["monitor", &saved, "--at", AT, "--json"]).exits(0).stdout;
    assert_eq!(saved.lines().count(), 1);
    let all = machine + &saved;
    for line in all.lines() {
        assert!(line.len() < 1024 && line.starts_with("{\"schema\":\"emmclab.sample/1\",\"time\":\""), "{line}");
    }
    keys::lines("sample", &all);
    complains(emmclab(["monitor", "--sysroot", &board, "mmcblk0", "--once"]).exits(2), "--at gives it");
    complains(emmclab(["monitor", "--sysroot", &board, "mmcblk9", "--at", AT]).exits(2), "mmcblk9");
}

#[test]
fn identities_are_hashed_with_the_fleets_salt() {
    let folder = scratch("monitor_salt");
    let salt = save(&folder, "salt", "one secret of a fleet\n");
    let board = testdata("sysfs/board");
    let hash = |more: &[&str]| {
        let args = ["monitor", "--sysroot", &board, "mmcblk0", "--at", AT, "--ndjson"];
        let line = emmclab(args.iter().chain(more)).exits(0).stdout;
        let sample: Value = serde_json::from_str(&line).unwrap();
        sample["card"]["cid_hash"].as_str().unwrap().to_owned()
    };
    let (plain, salted) = (hash(&[]), hash(&["--salt-file", &salt]));
    assert!(plain != salted && plain.len() == 16 && salted.len() == 16, "{plain} {salted}");
    assert_eq!(salted, hash(&["--salt-file", &salt]));
    let short = save(&folder, "short", "pepper");
    complains(emmclab(["monitor", &board, "--salt-file", &short]).exits(2), "expected a salt of 8 to 4096 bytes");
}

#[test]
fn only_news_reach_the_log_and_health_reads_it() {
    let folder = scratch("monitor_log");
    let log = folder.join("samples.ndjson");
    let path = log.to_str().unwrap();
    let sample = |life: &str, at: &str| {
        let _ = std::fs::remove_dir_all(folder.join("board"));
        let board = worn_board(&folder, life);
        emmclab(["monitor", "--sysroot", &board, "mmcblk0", "--at", at, "--append", path]).exits(0);
        std::fs::read_to_string(&log).unwrap()
    };
    let first = sample("0x03 0x01", "2026-01-01T00:00:00Z");
    assert_eq!(sample("0x03 0x01", "2026-01-02T00:00:00Z"), first, "nothing is new");
    let second = sample("0x04 0x01", "2026-03-01T00:00:00Z");
    assert_eq!((second.lines().count(), second.starts_with(&first)), (2, true));
    // A power cut left half a line.
    std::fs::write(&log, second.clone() + "{\"schema\":\"emmclab.sam").unwrap();
    let third = sample("0x05 0x01", "2026-05-01T00:00:00Z");
    assert!(third.lines().count() == 4 && third.ends_with("}\n"), "{third}");
    let whole: String = third.lines().filter(|line| line.ends_with('}')).map(|line| format!("{line}\n")).collect();
    std::fs::write(&log, whole).unwrap();
    let board = worn_board(&scratch("monitor_log_now"), "0x05 0x01");
    let health =
        ["health", "--sysroot", &board, "mmcblk0", "--at", "2026-05-01T00:00:00Z", "--history", path, "--json"];
    let forecast = emmclab(health).exits(0).json()["forecast"].take();
    assert_eq!((&forecast["observations"], &forecast["life_a"]["outcome"]), (&4.into(), &"bounded".into()));
}

#[test]
fn a_log_is_a_regular_file_of_its_own() {
    let folder = scratch("monitor_refused");
    let source = save(&folder, "card.hex", std::fs::read(testdata("seeds_console/extcsd_health.txt")).unwrap());
    complains(emmclab(["monitor", &source, "--at", AT, "--append", &source]).exits(4), "is the source itself");
    complains(emmclab(["monitor", &source, "--at", AT, "--append", "/dev/null"]).exits(2), "not a regular file");
    emmclab(["monitor", &source, "--at", AT, "--append", folder.to_str().unwrap()]).exits(2);
    assert_eq!(names_in(&folder), ["card.hex"]);
}

/// A mounted filesystem of the test.
#[cfg(feature = "bench")]
struct Mounted(Loop, std::path::PathBuf);

#[cfg(feature = "bench")]
impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.1).status();
    }
}

/// All that the kernel has sent to a device so far. Unit: bytes.
#[cfg(feature = "bench")]
fn written_bytes(device: &Loop) -> u64 {
    rustix::fs::sync();
    let stat = std::fs::read_to_string(format!("/sys/block/{}/stat", device.name())).unwrap();
    stat.split_ascii_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
}

/// A card that loses a step of its life in 73 days, on a real ext4, which writes its journal and inodes too.
#[cfg(feature = "bench")]
#[test]
fn a_year_of_samples_writes_less_than_a_megabyte() {
    const DAYS: i64 = 365;
    let folder = scratch("monitor_year");
    let Some(device) = Loop::new("monitor_year_image", 64 << 20) else { return };
    let options = ["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device.path];
    if !succeeds("mkfs.ext4", &options) {
        return skip("mkfs.ext4 is not installed");
    }
    let place = folder.join("card");
    std::fs::create_dir(&place).unwrap();
    if !succeeds("mount", &[&device.path, place.to_str().unwrap()]) {
        return skip("mount is not permitted");
    }
    let mounted = Mounted(device, place.clone());
    let log = place.join("samples.ndjson");
    let before = written_bytes(&mounted.0);
    let start = AT.parse::<jiff::Timestamp>().unwrap();
    let mut board = String::new();
    for day in 0..DAYS {
        if day % 73 == 0 {
            let _ = std::fs::remove_dir_all(folder.join("board"));
            board = worn_board(&folder, &format!("0x{:02x} 0x01", 1 + day / 73));
        }
        let at = (start + jiff::SignedDuration::from_hours(24 * day)).to_string();
        let append = ["--append", log.to_str().unwrap()];
        emmclab(["monitor", "--sysroot", &board, "mmcblk0", "--at", &at].iter().chain(&append)).exits(0);
        rustix::fs::sync();
    }
    let written = written_bytes(&mounted.0) - before;
    let lines = std::fs::read_to_string(&log).unwrap().lines().count();
    assert!((12..=18).contains(&lines), "{lines} lines");
    assert!((4096..1_000_000).contains(&written), "{written} bytes");
    println!("a year: {lines} lines, {written} bytes written to the device");
}

/// A program of the test that ends with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &str, args: &[String]) -> Option<Running> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => Some(Running(child)),
        Err(_) => {
            skip(&format!("{program} is not installed"));
            None
        }
    }
}

/// An address of the loopback interface that is this process's own, so that no other test takes its ports.
fn own_address() -> String {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}", 128 | high)
}

/// A port there that is free.
fn free_port() -> u16 {
    TcpListener::bind((own_address(), 0)).unwrap().local_addr().unwrap().port()
}

/// The answer to a GET; nothing while the server does not answer.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect((own_address(), port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Asks until the answer has this text; the server must go on running.
fn wait_for(server: &mut Running, port: u16, path: &str, text: &str) {
    loop {
        assert!(server.0.try_wait().unwrap().is_none(), "the server ended before {path} had {text}");
        if get(port, path).is_some_and(|answer| answer.contains(text)) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn promtool_accepts_metrics_and_rules() {
    let board = testdata("sysfs/board");
    let metrics = emmclab(["monitor", "--sysroot", &board, "--at", AT, "--metrics", "/dev/stdout"]).exits(0).stdout;
    let check =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut check) = check else { return skip("promtool is not installed") };
    check.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let complaints = check.wait_with_output().unwrap();
    assert!(complaints.status.success() && complaints.stdout.is_empty(), "{complaints:?}");
    for args in [["check", "rules", "emmc.rules.yml"], ["test", "rules", "emmc.rules.test.yml"]] {
        let done = Command::new("promtool").args(args).current_dir(contrib("")).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }
}

/// node_exporter reads the file, Prometheus scrapes it, and its alert fires when the register says so, not before.
#[test]
fn a_real_prometheus_raises_the_alert() {
    let folder = scratch("monitor_prometheus");
    let file = folder.join("emmc.prom");
    let sample = |life: &str| {
        let _ = std::fs::remove_dir_all(folder.join("board"));
        let board = worn_board(&folder, life);
        emmclab(["monitor", "--sysroot", &board, "mmcblk0", "--at", AT, "--metrics", file.to_str().unwrap()]).exits(0);
    };
    sample("0x09 0x01");
    // The rule waits an hour; here its condition is what counts.
    let rules = std::fs::read_to_string(contrib("emmc.rules.yml")).unwrap().replace("for: 1h", "for: 0s");
    save(&folder, "emmc.rules.yml", rules);
    let (address, exporter_port, port) = (own_address(), free_port(), free_port());
    save(
        &folder,
        "prometheus.yml",
        format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [emmc.rules.yml]\n\
             scrape_configs: [{{job_name: node, static_configs: [{{targets: ['{address}:{exporter_port}']}}]}}]\n"
        ),
    );
    let path = |name: &str| folder.join(name).display().to_string();
    let exporter = ["--collector.disable-defaults", "--collector.textfile"].map(str::to_owned).into_iter().chain([
        format!("--collector.textfile.directory={}", folder.display()),
        format!("--web.listen-address={address}:{exporter_port}"),
    ]);
    let Some(mut exporter) = start("prometheus-node-exporter", &exporter.collect::<Vec<_>>()) else { return };
    let prometheus = [
        format!("--config.file={}", path("prometheus.yml")),
        format!("--storage.tsdb.path={}", path("data")),
        format!("--web.listen-address={address}:{port}"),
    ];
    let Some(mut prometheus) = start("prometheus", &prometheus) else { return };
    wait_for(&mut exporter, exporter_port, "/metrics", "emmc_life_used_ratio");
    let query = "/api/v1/query?query=emmc_life_used_ratio";
    wait_for(&mut prometheus, port, query, "\"0.8\"");
    let alerts = "/api/v1/alerts";
    assert!(!get(port, alerts).unwrap().contains("EmmcLifeUsed"));
    sample("0x0a 0x01");
    wait_for(&mut prometheus, port, query, "\"0.9\"");
    wait_for(&mut prometheus, port, alerts, "EmmcLifeUsed");
}
