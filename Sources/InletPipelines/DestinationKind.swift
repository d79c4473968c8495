package import InletCore
internal import InletTransfer
package import SystemPackage

/// One kind of destination, as everything else sees it. All that is particular to a kind is in its folder; what others need of
/// it they ask here, of the pipeline, or of the `Destination` that it makes. `InletPipelines.docc/NewDestination.md` adds one step by step.
///
/// The keys of its destinations are its own members.
package protocol DestinationKind: KeyTable {
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

    /// What `inlet check` says of its settings, and of the routes that lead to it, without asking it.
    func remarks(on destination: DestinationSettings, _ routes: [Route]) -> [SettingFinding]

    /// A note of a delivery without what only we may know, for the journal; nil for one that holds no secrets, or is another
    /// kind's.
    func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]?

    /// Files that it reads although no key names them, below the user's home.
    func usualFiles(home: FilePath) -> [FilePath]
}

extension DestinationKind {
    package func remarks(on destination: DestinationSettings, _ routes: [Route]) -> [SettingFinding] { [] }
    package func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]? { nil }
    package func usualFiles(home: FilePath) -> [FilePath] { [] }
}

/// What `inlet check` says of a destination's settings, and whether nothing need be done about it.
package typealias SettingFinding = (isFine: Bool, text: String)

/// A value that its reader let through but its destination cannot use: of one of its keys, or of a field of a file's route.
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

extension Section {
    func fault<Value>(_ key: KeyPath<Table, Key<Value>>, _ message: String) -> SettingFault {
        SettingFault(key: keyName(key), message: message)
    }

    /// The address at `key`; nil where there is none. - Throws: `SettingFault` for one that cannot be used.
    func address(_ key: KeyPath<Table, Key<String?>>, allowHTTP: Bool) throws(SettingFault) -> HTTPURL? {
        guard let text = self[dynamicMember: key] else { return nil }
        return try HTTPURL(text, keyName(key), .configured(allowHTTP: allowHTTP))
    }

    /// The same of a key that is needed.
    func neededAddress(_ key: KeyPath<Table, Key<String?>>, allowHTTP: Bool) throws(SettingFault) -> HTTPURL {
        guard let url = try address(key, allowHTTP: allowHTTP) else { throw fault(key, "is missing") }
        return url
    }
}

extension HTTPURL {
    /// The address `text`, which stands at `key`.
    init(_ text: String, _ key: String, _ rules: URLRules) throws(SettingFault) {
        do { self = try HTTPURL(text, rules: rules) } catch { throw SettingFault(key, error) }
    }
}

package enum DestinationKinds {
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

/// What `inlet init` asks for a destination of one kind, and what it writes for files that go there.
package struct DestinationSetup: Sendable {
    /// One key of the destination that is asked for.
    package struct Input: Sendable {
        package enum Kind: Sendable {
            case text
            case path
            /// With the environment variable that is proposed.
            case secret(variable: String)
        }

        /// Whether there must be an answer.
        package enum Need: Sendable {
            case always
            case never
            /// Where the question with this key has none.
            case unless(String)
            /// The same, and it is not asked where that one has an answer.
            case insteadOf(String)
        }

        /// As in the configuration.
        package let key: String
        package let words: String
        /// What the option for it is for, on the command line; secrets have none of their own.
        package let help: String
        package let kind: Kind
        /// A value that the reader takes, for checks of the others while this is not known yet.
        package let example: String
        package let need: Need
        /// The section of the destination that the key is in.
        package let section: String?

        package init(
            _ key: String, _ words: String, _ kind: Kind = .text, help: String = "", example: String = "x",
            need: Need = .always, in section: String? = nil
        ) {
            self.key = key
            self.words = words
            self.help = help
            self.kind = kind
            self.example = example
            self.need = need
            self.section = section
        }

        /// The key of the question that makes this one unnecessary.
        package var alternative: String? {
            switch need {
            case .always, .never: nil
            case .unless(let key), .insteadOf(let key): key
            }
        }
    }

    package var name: String
    package var questions: [Input]
    /// Keys of the destination that one may want next, as lines of YAML without their `#`.
    package var hints: [String] = []
    /// Lines of the route, without its name, `to` and what becomes of the file.
    package var route: [String] = []
    /// Answers as options, for the help.
    package var example: String?

    /// For a route whose files have the same folders there as here.
    static let mirrored = ["key: \"{dir}/{name}\"              # the same folders there as here"]

    /// Asked only of a destination that stores files for another one.
    package static let publicURL = Input(
        "public_url", "Where can its objects be read without a login (their public address)?",
        help: "where objects can be read", example: "https://cdn.example.com")
}

/// What a destination may say of its server's certificate, where all requests go to one server.
struct TrustKeys: KeyTable {
    let pin = Key(
        "pin", .string,
        "sha256//BASE64 of the server's public key, for self-signed certificates; 'inlet check' prints it. Without a "
            + "ca_file the key alone counts, not the certificate's authority, name and dates.")
    let caFile = Self.caFile

    static let caFile = Key("ca_file", .path, "PEM file of certificates to trust besides the system's.")
}

extension Trust {
    /// - Throws: `SettingFault` where the pin is none.
    init(_ values: Section<TrustKeys>) throws(SettingFault) {
        self.init(caFile: values.caFile)
        guard let text = values.pin else { return }
        guard let pin = PublicKeyPin(text) else {
            throw values.fault(\.pin, "is not sha256// and the base64 of 32 bytes; 'inlet check' prints it")
        }
        self.pin = pin
    }
}

extension HTTPClient {
    /// The pin of the key that a server has now, as `pin:` takes it; nil without TLS.
    func serverPin(of url: HTTPURL) async throws(DeliveryError) -> String? {
        try await DeliveryError.onTransfer(await pin(of: url))?.text
    }
}
