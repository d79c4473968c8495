package import InletCore

/// Every kind of destination that this version knows.
package enum DestinationKinds {
    /// One line a kind.
    package static let all: [any DestinationKind] = [
        R2Kind(),
        S3Kind(),
        GigHiveKind(),
        VOPIKind(),
        RoboscopeKind(),
        FolderKind(),
    ]

    package static let types = all.map { $0.type }

    package static func named(_ type: String) -> (any DestinationKind)? { all.first { $0.type.name == type } }

    /// For sentences: those whose objects can be listed.
    package static let listable = names { $0.pipeline is any ObjectListing.Type }
    /// For sentences: those whose objects can be fetched by their keys.
    package static let readable = names { $0.pipeline is any ObjectReading.Type }

    private static func names(where isMeant: (any DestinationKind) -> Bool) -> String {
        all.filter(isMeant).map { $0.type.name }.joined(separator: " or ")
    }
}
