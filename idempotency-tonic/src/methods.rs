//! What is known of the methods of a server.

use std::{collections::HashSet, sync::Arc};

use prost::Message;
use prost_types::{FileDescriptorSet, MethodDescriptorProto, method_options::IdempotencyLevel};

/// Where gRPC's own services stand. Other packages may begin with `grpc.` as well.
const OWN: [&str; 5] =
    ["/grpc.health.", "/grpc.reflection.", "/grpc.channelz.", "/grpc.lb.", "/grpc.binarylog."];

/// What becomes of a call that has a key and streams its requests: it has no payload to compare before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClientStreams {
    /// It runs unguarded, as if it had no key.
    #[default]
    Pass,
    /// It is refused with `INVALID_ARGUMENT`.
    Refuse,
}

/// Which methods are not guarded as others are. Health, reflection and the rest of gRPC's own services pass always.
#[derive(Debug, Clone, Default)]
pub(crate) struct Methods {
    streaming: Arc<HashSet<Box<str>>>,
    safe: Arc<HashSet<Box<str>>>,
    client_streams: ClientStreams,
}

/// What is done with a call by its method alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    Guard,
    Pass,
    Refuse,
}

impl Methods {
    pub(crate) fn with_streaming(mut self, path: &str) -> Self {
        Arc::make_mut(&mut self.streaming).insert(path.into());
        self
    }

    pub(crate) fn with_safe(mut self, path: &str) -> Self {
        Arc::make_mut(&mut self.safe).insert(path.into());
        self
    }

    pub(crate) fn client_streams(self, client_streams: ClientStreams) -> Self {
        Self { client_streams, ..self }
    }

    /// The same, knowing what a file descriptor set says of its methods.
    pub(crate) fn described_by(mut self, descriptors: &[u8]) -> Result<Self, DescriptorError> {
        for file in FileDescriptorSet::decode(descriptors)?.file {
            let package = file.package();
            let prefix = if package.is_empty() { String::new() } else { format!("{package}.") };
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{prefix}{}/{}", service.name(), method.name());
                    if method.client_streaming() {
                        self = self.with_streaming(&path);
                    }
                    if is_safe(method) {
                        self = self.with_safe(&path);
                    }
                }
            }
        }
        Ok(self)
    }

    pub(crate) fn treatment(&self, path: &str) -> Treatment {
        if OWN.iter().any(|own| path.starts_with(own)) || self.safe.contains(path) {
            return Treatment::Pass;
        }
        match self.client_streams {
            _ if !self.streaming.contains(path) => Treatment::Guard,
            ClientStreams::Pass => Treatment::Pass,
            ClientStreams::Refuse => Treatment::Refuse,
        }
    }
}

fn is_safe(method: &MethodDescriptorProto) -> bool {
    let options = method.options.as_ref();
    options.is_some_and(|options| options.idempotency_level() == IdempotencyLevel::NoSideEffects)
}

/// The bytes are no file descriptor set.
#[derive(Debug, thiserror::Error)]
#[error("the bytes are no file descriptor set")]
pub struct DescriptorError(#[from] prost::DecodeError);

#[cfg(test)]
mod tests {
    use prost_types::{FileDescriptorProto, MethodOptions, ServiceDescriptorProto};

    use super::*;

    fn method(name: &str, client_streaming: bool, level: IdempotencyLevel) -> MethodDescriptorProto {
        MethodDescriptorProto {
            name: Some(name.to_owned()),
            client_streaming: Some(client_streaming),
            options: Some(MethodOptions {
                idempotency_level: Some(level.into()),
                ..MethodOptions::default()
            }),
            ..MethodDescriptorProto::default()
        }
    }

    fn descriptors(package: &str) -> Vec<u8> {
        let service = ServiceDescriptorProto {
            name: Some("Orders".to_owned()),
            method: vec![
                method("Create", false, IdempotencyLevel::IdempotencyUnknown),
                method("Replace", false, IdempotencyLevel::Idempotent),
                method("Look", false, IdempotencyLevel::NoSideEffects),
                method("Upload", true, IdempotencyLevel::IdempotencyUnknown),
            ],
            ..ServiceDescriptorProto::default()
        };
        let file = FileDescriptorProto {
            package: Some(package.to_owned()),
            service: vec![service],
            ..FileDescriptorProto::default()
        };
        FileDescriptorSet { file: vec![file] }.encode_to_vec()
    }

    #[test]
    fn descriptors_tell_what_streams_and_what_is_safe() {
        let methods = Methods::default().described_by(&descriptors("shop.v1")).unwrap();
        let of = |name: &str| methods.treatment(&format!("/shop.v1.Orders/{name}"));
        assert_eq!(
            ["Create", "Replace", "Look", "Upload"].map(of),
            [Treatment::Guard, Treatment::Guard, Treatment::Pass, Treatment::Pass]
        );
        let strict = methods.clone().client_streams(ClientStreams::Refuse);
        assert_eq!(strict.treatment("/shop.v1.Orders/Upload"), Treatment::Refuse);
        let bare = Methods::default().described_by(&descriptors("")).unwrap();
        assert_eq!(bare.treatment("/grpc.health.v1.Health/Check"), Treatment::Pass);
        assert_eq!(bare.treatment("/grpc.payments.v1.Payments/Charge"), Treatment::Guard);
        assert_eq!(bare.treatment("/Orders/Look"), Treatment::Pass);
        assert!(Methods::default().described_by(b"\xff").is_err());
    }

    #[test]
    fn the_services_of_grpc_itself_pass() {
        let methods = Methods::default();
        assert_eq!(methods.treatment("/grpc.health.v1.Health/Check"), Treatment::Pass);
        assert_eq!(
            methods.treatment("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
            Treatment::Pass
        );
        assert_eq!(methods.treatment("/grpcs.Orders/Create"), Treatment::Guard);
    }
}
