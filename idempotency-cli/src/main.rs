//! `idempotency --help` says what it does.

mod conformance;
mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tools for idempotency over HTTP.
#[derive(Debug, Parser)]
#[command(name = "idempotency", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Conformance(Box<conformance::Arguments>),
    Demo(demo::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Conformance(arguments) => conformance::run(*arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    }
}
