//! The servers of a case, and the connections to them.

use std::{collections::HashMap, fs};

use super::{
    Connection,
    case::{Case, Hook, Need},
};
use crate::server::{Server, Setting};

pub(crate) struct Stage {
    setting: Setting,
    servers: Vec<Server>,
    /// By server and name; the one without a name is everybody's.
    connections: HashMap<(usize, Option<String>), Connection>,
}

impl Stage {
    /// A place of its own for a case, as its configuration has it.
    pub(crate) async fn of(setting: &Setting, case: &Case) -> Self {
        let setting = setting.afresh().with_config(case.config.clone().into());
        let mut servers = vec![setting.start().await];
        if case.needs.contains(&Need::TwoServers) {
            servers.push(setting.start().await);
        }
        Self { setting, servers, connections: HashMap::new() }
    }

    pub(crate) fn authority(&self, server: usize) -> String {
        self.servers[server].client.address().to_string()
    }

    pub(crate) async fn connection(&mut self, server: usize, name: Option<&str>) -> Connection {
        let place = (server, name.map(str::to_owned));
        if let Some(connection) = self.connections.get(&place) {
            return connection.clone();
        }
        let connection = Connection::open(&self.authority(server)).await;
        self.connections.insert(place, connection.clone());
        connection
    }

    pub(crate) async fn pull(&mut self, hook: Hook) {
        match hook {
            Hook::StoreDown => fs::write(self.setting.outage(), "").unwrap(),
            Hook::StoreUp => fs::remove_file(self.setting.outage()).unwrap(),
            Hook::ServerKill => {
                self.servers.remove(0).killed().await;
                self.connections.retain(|(server, _), _| *server != 0);
            }
            Hook::ServerStart => self.servers.insert(0, self.setting.start().await),
        }
    }

    /// What came of the connections and the servers: nothing that happened on a stream may have ended them.
    pub(crate) async fn complaints(mut self) -> Vec<String> {
        let mut complaints = Vec::new();
        for ((server, name), connection) in &self.connections {
            if let Err(error) = connection.ping().await {
                complaints.push(format!("the connection {name:?} to server {server} is gone: {error}"));
            }
        }
        for server in &mut self.servers {
            complaints.extend((!server.is_alive()).then(|| "a server ended".to_owned()));
        }
        complaints
    }
}
