package import InletCore
package import InletTransfer
package import SystemPackage

/// One kind of destination, as everything else sees it. All that is particular to a kind is in its folder; what others need of
/// it they ask here, of the pipeline, or of the `Destination` that it makes. `packaging/new-destination.md` adds one step by step.
package protocol DestinationKind: Sendable {
    /// The word after `type:`, the keys and the fields: for the reader, the schema and the manual.
    var type: DestinationType { get }

    /// What delivers there. By it others know what can be asked of such destinations: whether they can be listed, fetched from.
    var pipeline: any Pipeline.Type { get }

    /// What `inlet init` asks and writes.
    var setup: DestinationSetup { get }

    /// Makes a destination with what all share: connections, limits, threads. Sends nothing.
    ///
    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    func make(_ destination: DestinationSettings, _ factory: PipelineFactory) throws(SettingFault) -> Destination

    /// The server that its requests go to; nil for kinds that need no network.
    ///
    /// - Throws: `SettingFault` as `make` does.
    func server(of destination: DestinationSettings) throws(SettingFault) -> (url: HTTPURL, trust: Trust)?

    /// What `inlet check` says of its settings, and of the routes that lead to it, without asking it.
    func remarks(on destination: DestinationSettings, _ routes: [Route]) -> [SettingRemark]

    /// A note of a delivery without what only we may know, for the journal; nil for one that holds no secrets, or is another
    /// kind's.
    func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]?

    /// Files that it reads although no key names them, below the user's home.
    func usualFiles(home: FilePath) -> [FilePath]
}

extension DestinationKind {
    package func server(of destination: DestinationSettings) throws(SettingFault) -> (url: HTTPURL, trust: Trust)? {
        nil
    }
    package func remarks(on destination: DestinationSettings, _ routes: [Route]) -> [SettingRemark] { [] }
    package func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]? { nil }
    package func usualFiles(home: FilePath) -> [FilePath] { [] }
}

/// What `inlet check` says of a destination's settings.
package struct SettingRemark: Sendable, Equatable {
    /// Whether nothing need be done about it.
    package var isFine: Bool
    package var text: String

    package init(isFine: Bool = true, _ text: String) {
        self.isFine = isFine
        self.text = text
    }
}

/// A value that its reader let through but its destination cannot use.
package struct SettingFault: Error, Sendable, Equatable {
    package var key: String
    /// Continues "`key` …".
    package var message: String

    package init(key: String, message: String) {
        self.key = key
        self.message = message
    }

    /// An address that cannot be used. Without it: what stands in the wrong place may be a credential, and the configuration's
    /// own line is shown beside the message.
    init(_ key: String, _ error: TransferError) { self.init(key: key, message: Self.words(error)) }

    static func words(_ error: TransferError) -> String {
        error.code == .insecureURL
            ? "is not encrypted; use https, or set allow_http: true for this destination"
            : "is no http or https address that can be used (one with a user or a password in it is not)"
    }
}
