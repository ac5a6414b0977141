//! The binary as a user runs it, and its inputs.

pub(crate) mod cards;
#[cfg(feature = "bench")]
pub(crate) mod hold;
#[cfg(feature = "bench")]
pub(crate) mod loops;
pub(crate) mod schema;
#[cfg(all(feature = "clone", feature = "serve"))]
pub(crate) mod served;
pub(crate) mod shim;
#[cfg(feature = "sim")]
pub(crate) mod virtual_cards;

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The result of one run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The command line, for messages.
    pub(crate) args: String,
    /// The exit code.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    fn new(args: String, output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap_or_else(|error| panic!("{args}: {error}"));
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        let code = output.status.code().unwrap_or_else(|| panic!("{args}: {}\n{stderr}", output.status));
        Self { args, code, stdout, stderr }
    }

    /// The run, if it ended with this code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}{}", self.args, self.stdout, self.stderr);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{}: {error}\n{}", self.args, self.stdout))
    }

    /// Standard output without line breaks and runs of blanks, so that a wrapped phrase is found.
    pub(crate) fn words(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The run, if its output has each of these, also wrapped.
    #[track_caller]
    pub(crate) fn says(self, phrases: &[&str]) -> Self {
        let words = self.words();
        for phrase in phrases {
            assert!(words.contains(phrase), "{}: no {phrase:?} in\n{}", self.args, self.stdout);
        }
        self
    }
}

/// The binary without influences of the environment: language, colours, width.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_emmclab"));
    for name in ["LC_CTYPE", "LANG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

/// Runs the binary.
pub(crate) fn emmclab<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let mut command = command();
    command.args(args);
    run(command)
}

/// Runs a prepared command.
pub(crate) fn run(mut command: Command) -> Run {
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Run::new(args.join(" "), output)
}

/// Runs the binary with something on standard input.
pub(crate) fn emmclab_with_input(args: &[&str], input: &[u8]) -> Run {
    let mut child =
        command().args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // What it does not want to read it need not read.
    let _ = pipe.write_all(input);
    drop(pipe);
    Run::new(args.join(" "), child.wait_with_output().unwrap())
}

/// A file or folder of testdata, as an argument.
pub(crate) fn testdata(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path);
    let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path.to_str().unwrap().to_owned()
}

/// An empty folder for one test; `name` is unique in the test, whose thread has the test's name. Its path is short, as
/// a Unix socket's path has 107 bytes at most.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    std::thread::current().name().hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{:06x}-{name}", hasher.finish() >> 40));
    // The last run's, if there was one.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    folder
}

/// Writes a file into a folder and returns its name, as an argument.
pub(crate) fn save(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path.to_str().unwrap().to_owned()
}

/// Prints why a test is skipped, even if the output of tests is captured.
pub(crate) fn skip(why: &str) {
    // If standard error is closed, the message is dropped.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// The files in a folder, hidden ones too.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// How often a test repeats what is random in it: `EMMCLAB_ROUNDS`.
#[cfg(any(feature = "bench", feature = "serve"))]
pub(crate) fn rounds(otherwise: u64) -> u64 {
    std::env::var("EMMCLAB_ROUNDS").map_or(otherwise, |count| count.parse().expect("a number of rounds"))
}
