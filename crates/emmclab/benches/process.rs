//! Whole processes on the same bytes: `emmclab show FILE`, `mmc extcsd read` of mmc-utils through the ioctl shim, and
//! `true` as the lower bound: the cost of starting a process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_main};

const DEVICE: &str = "/dev/mmcblk99";

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The dump as 512 bytes, and the shim built from its source; absent where there is no C compiler.
fn prepared(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let digits =
        std::fs::read_to_string(testdata().join("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex")).ok()?;
    let pairs = digits.trim().as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
    let bytes: Vec<u8> = pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    let (dump, shim) = (folder.join("ext_csd.bin"), folder.join("shim.so"));
    std::fs::write(&dump, bytes).ok()?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&shim).arg(testdata().join("shim/mmc_ioc_shim.c")).arg("-ldl");
    compiler.status().is_ok_and(|status| status.success()).then_some((dump, shim))
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} failed");
}

fn processes(c: &mut Criterion) {
    let folder = std::env::temp_dir().join(format!("emmclab-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let Some((dump, shim)) = prepared(&folder) else {
        eprintln!("SKIPPED: no C compiler `cc` to build the shim with");
        return;
    };
    let emmclab = env!("CARGO_BIN_EXE_emmclab");
    let mut group = c.benchmark_group("process");
    group.bench_function("true", |b| b.iter(|| run(&mut Command::new("true"))));
    group.bench_function("emmclab --version", |b| b.iter(|| run(Command::new(emmclab).arg("--version"))));
    group.bench_function("emmclab show FILE", |b| b.iter(|| run(Command::new(emmclab).arg("show").arg(&dump))));
    group.bench_function("emmclab show FILE --json", |b| {
        b.iter(|| run(Command::new(emmclab).args(["show", "--json"]).arg(&dump)));
    });
    if Command::new("mmc").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: mmc-utils is not installed (package mmc-utils)");
    } else {
        group.bench_function("mmc extcsd read, through the shim", |b| {
            b.iter(|| {
                let mut mmc = Command::new("mmc");
                mmc.args(["extcsd", "read", DEVICE]);
                run(mmc.env("LD_PRELOAD", &shim).env("EMMC_SHIM_DEVICE", DEVICE).env("EMMC_SHIM_EXT_CSD", &dump));
            });
        });
    }
    group.finish();
    std::fs::remove_dir_all(&folder).expect("the temporary folder is ours");
}

#[allow(missing_docs)]
mod group {
    use super::processes;
    criterion::criterion_group!(benches, processes);
}
criterion_main!(group::benches);
