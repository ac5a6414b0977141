//! The guest as a User-Mode Linux in simulated time: `build` makes its kernel, this runs a script in it.
//!
//! Same first file system, same scripts. The kernel is a process of this machine; clock and card come from `emmclab
//! serve --uml`. What the script prints and leaves goes to a folder of the host (hostfs), which takes none of its time.

mod build;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::guest::cpio::Archive;
use crate::guest::folder::Folder;
use crate::guest::machine::{Show, last_lines};
use crate::guest::packages;
use crate::guest::qemu::bound_to_us;
use crate::guest::server::{Controller, Emmclab, Pace, Server};
use crate::guest::trial::Options;
pub(crate) use build::{PACKAGES, RECIPE, build, check_host};

const INIT: &str = include_str!("uml/init.sh");
const LIBRARY: &str = include_str!("library.sh");
/// What differs from the library of the guest in QEMU.
const OWN_LIBRARY: &str = include_str!("uml/library.sh");
/// How often the script's output is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What a machine is started with.
pub(crate) struct UmlRig {
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: PathBuf,
}

/// Runs a script; its exit status.
pub(crate) fn run(rig: &UmlRig, options: &Options, script: &str, programs: &[(&str, PathBuf)]) -> anyhow::Result<u8> {
    ensure!(options.pace == Pace::Real, "--uml: there is one simulated clock, so --dilate and --no-delay mean nothing");
    let controller = options.controller.unwrap_or(Controller::Cqe);
    ensure!(
        matches!(controller, Controller::Cqe | Controller::NoCqe),
        "--uml --controller {}: User-Mode Linux has no INTx; use cqe or no-cqe",
        controller.name()
    );
    let emmclab = Emmclab::build()?;
    let folder = Folder::new()?;
    let card = options.card.clone().unwrap_or_else(|| folder.path.join("card"));
    if options.card.is_none() {
        emmclab.create(&card, &options.profile)?;
        if let Some(job) = &options.age {
            emmclab.age(&card, job)?;
        }
    }
    // The only folder of the host that the guest sees.
    let host = folder.path.join("host");
    fs::create_dir(&host)?;
    File::create(host.join("output"))?;
    let initramfs = folder.path.join("initramfs");
    with_script(&rig.initramfs, &initramfs, script, controller, programs)?;
    let accesses = options.accesses.as_ref().map(|path| [OsString::from("--accesses"), path.into()]);
    let accesses = accesses.iter().flatten().cloned().collect::<Vec<_>>();
    let server = Server::start_uml(&emmclab, &card, &folder.path, controller, &accesses)?;
    let started = Instant::now();
    let machine = Machine(start(rig, options, &folder.path)?);
    let output = Output { path: host.join("output"), shown: 0, is_shown: options.show != Show::Nothing };
    let ended = machine.follow(output)?;
    let wall = started.elapsed();
    server.stop().with_context(|| last_lines(&folder.path.join("serve")))?;
    eprint!("{}", fs::read_to_string(folder.path.join("serve")).unwrap_or_default());
    eprintln!("guest: {:.2} s of real time", wall.as_secs_f64());
    if options.show == Show::Console {
        eprint!("{}", String::from_utf8_lossy(&fs::read(folder.path.join("console")).unwrap_or_default()));
    }
    if let (Some(out), files) = (&options.out, host.join("files.tar")) {
        fs::create_dir_all(out).with_context(|| out.display().to_string())?;
        if files.exists() {
            let mut tar = std::process::Command::new("tar");
            packages::run(tar.arg("--extract").arg("--file").arg(files).arg("--directory").arg(out))?;
        }
    }
    let status = fs::read_to_string(host.join("status")).ok().and_then(|text| text.trim().parse().ok());
    status.with_context(|| {
        let console = last_lines(&folder.path.join("console"));
        format!("the guest stopped before the script ended ({ended}):\n{console}")
    })
}

/// A running kernel; it is killed when it is dropped.
struct Machine(Child);

impl Machine {
    /// Shows the script's output until the machine is off; how it ended.
    fn follow(mut self, mut output: Output) -> anyhow::Result<String> {
        loop {
            let ended = self.0.try_wait().context("waiting for the kernel")?;
            output.show()?;
            if let Some(status) = ended {
                return Ok(status.to_string());
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended by itself. Its guest's processes end with it: they are traced by it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The file that the script prints to.
struct Output {
    path: PathBuf,
    shown: u64,
    is_shown: bool,
}

impl Output {
    fn show(&mut self) -> anyhow::Result<()> {
        let mut file = File::open(&self.path).with_context(|| self.path.display().to_string())?;
        file.seek(SeekFrom::Start(self.shown))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        self.shown += text.len() as u64;
        if self.is_shown && !text.is_empty() {
            io::stdout().write_all(&text)?;
            io::stdout().flush()?;
        }
        Ok(())
    }
}

/// Starts the kernel. Every name that it gets is relative to the run's folder: no parameter differs between runs, from
/// which the kernel makes random numbers.
fn start(rig: &UmlRig, options: &Options, folder: &Path) -> anyhow::Result<Child> {
    // The layout of the kernel's memory would depend on the host's random addresses.
    let mut command = bound_to_us(Path::new("setarch"));
    command.arg("--addr-no-randomize").arg(&rig.kernel);
    command.arg(format!("mem={}M", options.memory_mib));
    command.args(["time-travel=ext:uml/time.sock", "virtio_uml.device=uml/card.sock:1234"]);
    command.args([
        "initrd=initramfs",
        "hostfs=/proc/self/cwd/host",
        "norandmaps",
        "con=null",
        "con0=null,fd:1",
        "panic=-1",
    ]);
    command.args(&options.qemu).current_dir(folder);
    let console = File::create(folder.join("console"))?;
    // The kernel keeps its process number below HOME.
    command
        .env_clear()
        .env("HOME", ".")
        .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")));
    command.stdin(Stdio::null()).stdout(console.try_clone()?).stderr(console);
    command.spawn().context("cannot start the kernel")
}

/// The first file system, followed by an archive for this run.
fn with_script(
    from: &Path,
    to: &Path,
    script: &str,
    controller: Controller,
    programs: &[(&str, PathBuf)],
) -> anyhow::Result<()> {
    let mut archive = Archive::default();
    archive.file("init", true, INIT.as_bytes());
    archive.file("guest/library.sh", false, (LIBRARY.to_owned() + OWN_LIBRARY).as_bytes());
    archive.file("guest/script", false, script.as_bytes());
    let environment = format!("export CONTROLLER={}\nexport DILATION=1\nexport CLOCK=uml\n", controller.name());
    archive.file("guest/environment", false, environment.as_bytes());
    archive.folder("host");
    for (name, path) in programs {
        let program = fs::read(path).with_context(|| path.display().to_string())?;
        archive.file(&format!("guest/{name}"), true, &program);
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    let mut file = File::options().append(true).open(to)?;
    file.write_all(&archive.finish()).with_context(|| to.display().to_string())
}
