//! `idempotency conformance`: grades a server.

use std::process::ExitCode;

use clap::Args;
use idempotency_conformance::Suite;

/// Grades a server with the conformance suite of the Idempotency-Key draft.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where the server is: `http://HOST:PORT`, with the path its pages begin with if they do.
    #[arg(long, required_unless_present = "list")]
    url: Option<String>,
    /// Says which vectors there are, and grades nothing.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let suite = Suite::own();
    for vector in &suite.vectors {
        println!("{}\t{}\t{}", vector.id, vector.kind.as_str(), vector.title);
    }
    if arguments.list {
        return ExitCode::SUCCESS;
    }
    eprintln!("idempotency: grading is not built in yet");
    ExitCode::from(2)
}
