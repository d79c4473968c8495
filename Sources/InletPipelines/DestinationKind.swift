package import InletCore
internal import InletTransfer
package import SystemPackage

/// One kind of destination, as everything else sees it. Everything particular to a kind is in its folder; others ask
/// the kind here, its pipeline, or the `Destination` that it makes. `InletPipelines.docc/NewDestination.md` adds one
/// step by step.
///
/// Its members are the keys of its destinations.
package protocol DestinationKind: KeyTable {
    /// The word after `type:`, the keys and the fields, for the reader, the schema and the manual.
    var type: DestinationType { get }

    /// The pipeline's type. Others learn from it what these destinations support: listing, fetching.
    var pipeline: any Pipeline.Type { get }

    /// The questions of `inlet init`, and the lines it writes.
    var setup: DestinationSetup { get }

    /// Makes a destination with the shared connections, limits and threads. Sends nothing.
    ///
    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    func make(_ destination: DestinationSettings, _ factory: PipelineFactory) throws(SettingFault) -> Destination

    /// The findings of `inlet check` on its settings, and on the routes that lead to it, without contacting it.
    func remarks(on destination: DestinationSettings, _ routes: [Route]) -> [SettingFinding]

    /// A delivery's note with its secrets sealed, for the journal; nil for a note without secrets, or of another kind.
    func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]?

    /// Its claim on an address that is of this kind, for other kinds that are given it; nil for any other address.
    func claim(host: String, path: String) -> AddressClaim?

    /// Files below the user's home that it reads although no key names them.
    func usualFiles(home: FilePath) -> [FilePath]
}

extension DestinationKind {
    package func remarks(on destination: DestinationSettings, _ routes: [Route]) -> [SettingFinding] { [] }
    package func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]? { nil }
    package func usualFiles(home: FilePath) -> [FilePath] { [] }
    package func claim(host: String, path: String) -> AddressClaim? { nil }
}

/// A finding of `inlet check` on a destination's settings, and whether it is fine.
package typealias SettingFinding = (isFine: Bool, text: String)

/// A value that the reader accepted but the destination cannot use: of one of its keys, or of a field of a file's
/// route.
package struct SettingFault: Error, Sendable, Equatable {
    package var key: String
    /// Completes the sentence "`key` …".
    package var message: String
    /// Where such a value belongs; nil where nobody can tell.
    package private(set) var rightful: RightfulKey?

    package init(key: String, message: String) {
        self.key = key
        self.message = message
    }

    /// The address `url` of `key`, which is of the kind `type`.
    fileprivate init(_ key: String, _ url: HTTPURL, _ claim: AddressClaim, of type: DestinationType) {
        let address = String(url.redacted.dropLast(url.path.count - claim.path.count))
        self.init(
            key: key, message: "is \(claim.words); use 'type: \(type.name)' with '\(claim.key): \(address)'")
        rightful = RightfulKey(type: type.name, key: claim.key, address: address)
    }

    /// An address that cannot be used. The text omits it: a misplaced value may be a credential, and the message shows
    /// the configuration's own line anyway.
    init(_ key: String, _ error: TransferError) { self.init(key: key, message: Self.words(error)) }

    static func words(_ error: TransferError) -> String {
        error.code == .insecureURL
            ? "is not encrypted; use https, or set allow_http: true for this destination"
            : "must be an http:// or https:// address without credentials"
    }
}

/// The key of another kind of destination, to which a misplaced address belongs.
package struct RightfulKey: Sendable, Equatable {
    /// As after `type:`.
    package var type: String
    package var key: String
    /// The address as that key takes it.
    package var address: String
}

/// A kind's claim on an address.
package struct AddressClaim: Sendable {
    var key: String
    /// The beginning of its path that belongs to the address of the service.
    var path: Substring
    /// Completes the sentence "It is …".
    var words: String
    /// Whether no other kind can use it: then they refuse it. Otherwise `check` warns, and `init` asks.
    var isCertain: Bool
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

    /// The same for a required key.
    func neededAddress(_ key: KeyPath<Table, Key<String?>>, allowHTTP: Bool) throws(SettingFault) -> HTTPURL {
        guard let url = try address(key, allowHTTP: allowHTTP) else { throw fault(key, "is missing") }
        return url
    }
}

extension HTTPURL {
    /// The address `text` of `key`.
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

    /// In the order of `inlet init`: first what most people have.
    package static let offered: [any DestinationKind] = {
        let first = [FolderSettings.type.name, S3Settings.type.name]
        return first.compactMap { named($0) } + all.filter { !first.contains($0.type.name) }
    }()

    package static func named(_ type: String) -> (any DestinationKind)? { all.first { $0.type.name == type } }

    /// - Throws: the fault of `key`, when the address is of another kind than `type` without doubt.
    static func requireOwn(_ url: HTTPURL, _ key: String, _ type: DestinationType) throws(SettingFault) {
        if let fault = claimed(url, key, type, isCertain: true) { throw fault }
    }

    /// The warning about a destination's address that looks as if it were of another kind; nil for any other. If the
    /// address is right, the destination works.
    package static func doubt(about destination: DestinationSettings) -> SettingFault? {
        guard let kind = named(destination.type), kind.type.givesURLs else { return nil }
        return kind.setup.questions.lazy.compactMap { question -> SettingFault? in
            // Most keys are no addresses.
            guard let text = destination.values.string(question.key),
                let url = try? HTTPURL(text, rules: .configured(allowHTTP: true))
            else { return nil }
            return claimed(url, question.key, kind.type, isCertain: false)
        }.first
    }

    private static func claimed(
        _ url: HTTPURL, _ key: String, _ type: DestinationType, isCertain: Bool
    ) -> SettingFault? {
        all.lazy.filter { $0.type.name != type.name }.compactMap { kind in
            let claim = kind.claim(host: url.host, path: url.path)
            return claim?.isCertain == isCertain ? claim.map { SettingFault(key, url, $0, of: kind.type) } : nil
        }.first
    }

    /// For an address whose server answers in JSON where it should not.
    static let jsonRemedy = "for the Spiral Storage API, use 'type: r2' with this address as 'api'"

    /// For sentences: the kinds whose objects can be listed.
    package static let listable = names { $0.pipeline is any ObjectListing.Type }
    /// For sentences: the kinds whose objects can be fetched by key.
    package static let readable = names { $0.pipeline is any ObjectReading.Type }

    private static func names(where isMeant: (any DestinationKind) -> Bool) -> String {
        all.filter(isMeant).map { $0.type.name }.joined(separator: " or ")
    }
}

/// The questions of `inlet init` for a destination of one kind, and the lines that it writes for its files.
package struct DestinationSetup: Sendable {
    /// A question about one key of the destination.
    package struct Input: Sendable {
        package enum Kind: Sendable {
            case text
            case path
            /// With the proposed environment variable.
            case secret(variable: String)
        }

        /// Whether an answer is required.
        package enum Need: Sendable {
            case always
            case never
            /// Required where the question with this key has no answer.
            case unless(String)
            /// The same; not asked where that question has an answer.
            case insteadOf(String)
        }

        /// As in the configuration.
        package let key: String
        package let words: String
        /// The help of its command-line option; secrets have no option.
        package let help: String
        package let kind: Kind
        /// A value that the reader accepts, to check the others before this one is known.
        package let example: String
        package let need: Need
        /// The key's section within the destination.
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
    /// Its name in the words of a person who has one.
    package var place: String
    /// Further words for it, in lower case.
    package var words: Set<String> = []
    package var questions: [Input]
    /// Keys of the destination that a person may want next, as lines of YAML without their `#`.
    package var hints: [String] = []
    /// Lines of the route, without its name, `to` and the disposal of files.
    package var route: [String] = []
    /// Answers as options, for the help.
    package var example: String?
    /// The question about a login that each use renews: `inlet init` does not use it, because the agent needs it.
    package var renewedLogin: String?

    /// For a route whose files keep their folders at the destination.
    static let mirrored = ["key: \"{dir}/{name}\"              # the same folders there as here"]

    /// Asked only of a destination that stores files for another.
    package static let publicURL = Input(
        "public_url", "At which public address can its objects be read without a login?",
        help: "where objects can be read", example: "https://cdn.example.com")
}

/// A destination's settings about its server's certificate, where all requests go to one server.
struct TrustKeys: KeyTable {
    let pin = Key(
        "pin", .string,
        "sha256//BASE64 of the server's public key, for self-signed certificates; 'inlet check' prints it. Without a "
            + "ca_file the key alone counts, not the certificate's authority, name and dates.")
    let caFile = Self.caFile

    static let caFile = Key("ca_file", .path, "PEM file of certificates to trust besides the system's.")
}

extension Trust {
    /// - Throws: `SettingFault` for an invalid pin.
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
    /// The pin of the server's current key, as `pin:` takes it; nil without TLS.
    func serverPin(of url: HTTPURL) async throws(DeliveryError) -> String? {
        try await DeliveryError.onTransfer(await pin(of: url))?.text
    }
}
