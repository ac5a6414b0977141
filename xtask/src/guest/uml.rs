//! The guest as a User-Mode Linux in simulated time: `build` makes its kernel, this runs a script in it.
//!
//! Same first file system, same scripts. The kernel is a process of this machine; clock and card come from `emmclab
//! serve --uml`. What the script prints and leaves goes to a folder of the host (hostfs), its talk with the host goes
//! through the controller's mailbox: neither takes time of the guest.

mod build;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::guest::folder::Folder;
use crate::guest::machine::{Machine, Outcome, Show, append_script, last_lines};
use crate::guest::qemu::bound_to_us;
use crate::guest::server::{Controller, Emmclab, Server};
use crate::guest::trial::{self, Host, Options, Served, attend};
pub(crate) use build::{PACKAGES, RECIPE, build, check_host};

/// What differs from the library of the guest in QEMU.
const LIBRARY: &str = include_str!("uml/library.sh");
/// How often it is looked whether the kernel has connected.
const LOOK: Duration = Duration::from_millis(2);

/// What a machine is started with.
pub(crate) struct UmlRig {
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: PathBuf,
}

/// Runs a script with a card.
pub(crate) fn run(
    rig: &UmlRig,
    emmclab: Option<&Emmclab>,
    options: &Options,
    script: &str,
    programs: &[(&str, PathBuf)],
    host: &mut dyn Host,
) -> anyhow::Result<Outcome> {
    let emmclab = emmclab.context("a card without the program that serves it")?;
    let controller = options.controller.unwrap_or(Controller::Cqe);
    let folder = Folder::new()?;
    let card = trial::card(emmclab, options, &folder.path)?;
    // The only folder of the host that the guest sees.
    let shared = folder.path.join("host");
    fs::create_dir(&shared)?;
    File::create(shared.join("output"))?;
    std::os::unix::fs::symlink("host/files.tar", folder.path.join("files.tar"))?;
    let environment = [format!("CONTROLLER={}", controller.name()), "DILATION=1".into(), "CLOCK=virtual".into()];
    append_script(&rig.initramfs, &folder.path.join("initramfs"), LIBRARY, script, &environment, programs)?;
    let mailbox = folder.path.join("mailbox");
    let listener = UnixListener::bind(&mailbox).context("the guest's mailbox")?;
    let mut more: Vec<OsString> = ["--record".into(), (&folder.path).into()].to_vec();
    more.extend(["--mailbox".into(), mailbox.into()]);
    more.extend(options.accesses.iter().flat_map(|path| ["--accesses".into(), path.into()]));
    let server = Server::start_uml(emmclab, &card, &folder.path, controller, &more)?;
    let started = Instant::now();
    let mut child = start(rig, options, &folder.path)?;
    let control = match accept(&listener, &mut child) {
        Ok(control) => control,
        Err(error) => {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error.context(last_lines(&folder.path.join("console"))));
        }
    };
    let show = options.show != Show::Nothing;
    let machine = Machine::of(child, control, &shared, &folder.path, ("User-Mode Linux", "console"), show)?;
    let served =
        Served { folder: &folder.path, card: &card, emmclab: Some(emmclab), server: Some(server), has_record: true };
    let outcome = attend(machine, served, options, host);
    if options.show == Show::Console {
        eprint!("{}", String::from_utf8_lossy(&fs::read(folder.path.join("console")).unwrap_or_default()));
    }
    if show {
        println!("guest: {:.2} s of real time", started.elapsed().as_secs_f64());
    }
    outcome
}

/// The server's connection on behalf of the guest, which comes when the kernel has found its clock.
fn accept(listener: &UnixListener, child: &mut Child) -> anyhow::Result<UnixStream> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((control, _)) => {
                control.set_nonblocking(false)?;
                return Ok(control);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("the guest's mailbox"),
        }
        if let Some(status) = child.try_wait().context("waiting for the kernel")? {
            bail!("User-Mode Linux ended at once: {status}");
        }
        std::thread::sleep(LOOK);
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
    command.args(["initrd=initramfs", "hostfs=/proc/self/cwd/host", "norandmaps", "panic=-1"]);
    command.args(["con=null", "con0=null,fd:2"]).args(&options.qemu).current_dir(folder);
    // The kernel keeps its process number below HOME.
    command
        .env_clear()
        .env("HOME", ".")
        .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(folder.join("console"))?);
    command.spawn().context("cannot start the kernel")
}
