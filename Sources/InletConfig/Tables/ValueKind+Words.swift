internal import InletCore

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
