package import InletCore
package import InletTransfer
package import SystemPackage

/// What a `type: r2` destination is told: the Spiral Storage multipart API in front of Cloudflare R2.
package struct R2Settings: Sendable {
    /// The API's generations on the wire.
    package enum Dialect: String, Sendable, CaseIterable {
        /// `/r2/multipart/*`, `part_count`, no authentication.
        case seed
        /// `/r2/multipart/*`, `content_type` and `parts`, no authentication.
        case r2
        /// `/v1/*` with `X-API-Key`, and a single presigned PUT for small files.
        case v1
    }

    /// How the destination's word is checked.
    package enum Verify: String, Sendable, CaseIterable {
        /// Every part's ETag must be the MD5 of what was read.
        case md5
        /// An ETag must be there; only lengths are compared.
        case size
    }

    package var api: HTTPURL
    package var dialect: Dialect
    package var apiKey: Secret?
    /// Also the smallest, where the line decides.
    package var partSize: Int64
    /// Above `partSize` with `part_size: auto`.
    package var largestPart: Int64
    package var parallelParts: Int
    /// Where objects can be read, without a signature; used to look up an object and in receipts.
    package var publicURL: HTTPURL?
    package var verify: Verify
    package var allowHTTP: Bool
    package var caFile: FilePath?
    package var connections: Int
    package var maxInFlight: Int?

    package static let type = DestinationType(
        name: "r2", summary: "Cloudflare R2 through the Spiral Storage API (presigned multipart uploads)",
        keys: [
            KeySpec("api", .string, required: true, "Address of the API, for example https://storage.example."),
            KeySpec(
                "dialect", .choice(Dialect.allCases.map(\.rawValue)), default: "v1",
                "Generation of the API: v1 has keys and single PUTs, r2 and seed are older."),
            KeySpec("api_key", .secret, "Sent as X-API-Key on every call of dialect v1."),
            KeySpec(
                "part_size", .bytesOrAuto, default: "auto",
                "Size of a part, from 5MiB; auto: 8MiB to 64MiB, by the rate; larger for files over 1,000 parts."),
            KeySpec("parallel_parts", .integer(1...64), default: "4", "Parts of one file sent at once, at most."),
            KeySpec("public_url", .string, "Where objects can be read; used to look up an object and in receipts."),
            KeySpec(
                "verify", .choice(Verify.allCases.map(\.rawValue)), default: "md5",
                "md5 compares every part's ETag with its MD5; size is for stores whose ETags are not MD5."),
            KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP to hosts other than loopback."),
            Trust.caFileKey,
            KeySpec("connections", .integer(1...256), default: "32", "Small files sent at once."),
            KeySpec("max_in_flight", .integer(1...64), "Big files sent at once to this destination."),
        ] + KeySpec.bandwidth + [.proxy], givesURLs: true)

    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    package init(_ values: ConfigSection) throws(SettingFault) {
        allowHTTP = values.boolean("allow_http") ?? false
        let rules = URLRules.configured(allowHTTP: allowHTTP)
        guard let address = values.string("api") else { throw SettingFault(key: "api", message: "is missing") }
        api = try Self.url(address, "api", rules)
        publicURL = try values.string("public_url").map { text throws(SettingFault) in
            try Self.url(text, "public_url", rules)
        }
        dialect = values.string("dialect").flatMap(Dialect.init) ?? .v1
        apiKey = values.secret("api_key")
        let given = values.bytes("part_size")
        partSize = given ?? PartPlan.defaultSize
        largestPart = given ?? PartPlan.largestAuto
        guard (PartPlan.smallestSize...PartPlan.largestSize).contains(partSize) else {
            throw SettingFault(key: "part_size", message: "must be between 5MiB and 4GiB (limits of the store)")
        }
        parallelParts = values.integer("parallel_parts") ?? 4
        verify = values.string("verify").flatMap(Verify.init) ?? .md5
        caFile = values.string("ca_file").map { FilePath($0) }
        connections = values.integer("connections") ?? 32
        maxInFlight = values.integer("max_in_flight")
        if dialect == .v1, apiKey?.isEmpty ?? true {
            throw SettingFault(key: "api_key", message: "is needed for dialect v1")
        }
    }

    private static func url(_ text: String, _ key: String, _ rules: URLRules) throws(SettingFault) -> HTTPURL {
        do {
            return try HTTPURL(text, rules: rules)
        } catch {
            throw SettingFault(key, error)
        }
    }
}

/// Cloudflare R2 behind the Spiral Storage API.
package struct R2Kind: DestinationKind {
    package var type: DestinationType { R2Settings.type }
    package var pipeline: any Pipeline.Type { R2Pipeline.self }

    package func make(
        _ destination: DestinationSettings, _ factory: PipelineFactory
    ) throws(SettingFault) -> Destination {
        let settings = try R2Settings(destination.values)
        let pipeline = R2Pipeline(
            settings: settings,
            client: try factory.client(
                for: destination, Trust(caFile: settings.caFile), connections: settings.connections),
            hashing: factory.pool)
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: settings.partSize,
            connections: settings.connections, maxInFlight: settings.maxInFlight)
        made.setAddress(settings.api)
        return made
    }

    package func server(of destination: DestinationSettings) throws(SettingFault) -> (url: HTTPURL, trust: Trust)? {
        let settings = try R2Settings(destination.values)
        return (settings.api, Trust(caFile: settings.caFile))
    }

    package var setup: DestinationSetup {
        DestinationSetup(
            name: "r2",
            questions: [
                .init(
                    "api", "Address of the Spiral Storage API?", help: "the address of the API",
                    example: "https://storage.example.com"),
                .init("api_key", "Its API key", .secret(variable: "SPIRAL_KEY")),
            ],
            hints: [
                "public_url: \"https://cdn.example.com\"   # where stored objects can be read", "parallel_parts: 4",
                "bandwidth: 20MiB/s",
            ], route: DestinationSetup.mirrored,
            example: "--watch /srv/drop --to r2 --api https://storage.example.com --env api_key=SPIRAL_KEY")
    }
}
