package import InletCore

extension ValueKind {
    /// The names of all keys below this kind whose values are secret.
    var secretNames: [String] {
        switch self {
        case .section(let keys), .brief(_, let keys):
            keys.flatMap { $0.kind.isSecret ? [$0.name] : $0.kind.secretNames }
        case .list(let kind), .map(let kind): kind.secretNames
        default: []
        }
    }

    /// The places of all credentials below this kind, addresses with a login among them: `auth.api_key`.
    package var secretPaths: [String] {
        switch self {
        case .section(let keys), .brief(_, let keys):
            keys.flatMap { spec in
                switch spec.kind {
                case .secret, .url: [spec.name]
                default: spec.kind.secretPaths.map { $0.isEmpty ? spec.name : "\(spec.name).\($0)" }
                }
            }
        case .list(let kind), .map(let kind): kind.isScalar ? (kind.isSecret ? [""] : []) : kind.secretPaths
        default: []
        }
    }

    var isSecret: Bool {
        switch self {
        case .secret: true
        case .list(let kind), .map(let kind): kind.isSecret
        default: false
        }
    }

    var isScalar: Bool {
        switch self {
        case .list, .section, .brief, .map: false
        default: true
        }
    }
}
