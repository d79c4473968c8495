package import InletCore
package import InletLinux
package import InletTransfer

/// The settings of a `type: r2` destination: the Spiral Storage multipart API in front of Cloudflare R2.
package struct R2Settings: Sendable {
    /// The API's generations.
    package enum Dialect: String, Sendable, CaseIterable {
        /// `/r2/multipart/*`, `part_count`, no authentication.
        case seed
        /// `/r2/multipart/*`, `content_type` and `parts`, no authentication.
        case r2
        /// `/v1/*` with `X-API-Key`, and a single presigned PUT for small files.
        case v1
    }

    /// How arrived bytes are verified.
    package enum Verify: String, Sendable, CaseIterable {
        /// Every part's ETag must be the MD5 of what was read.
        case md5
        /// An ETag must be there; only lengths are compared.
        case size
    }

    package var api: HTTPURL
    package var dialect: Dialect
    package var apiKey: Secret?
    /// The smallest parts where the line decides.
    package var partSize: Int64
    /// Larger than `partSize` with `part_size: auto`.
    package var largestPart: Int64
    package var parallelParts: Int
    /// Where objects can be read without a signature; used for look-ups and in receipts.
    package var publicURL: HTTPURL?
    package var verify: Verify
    package var allowHTTP: Bool
    package var trust: Trust
    package var connections: Int
    package var maxInFlight: Int?

    package static let type = DestinationType(
        name: "r2", summary: "Cloudflare R2 through the Spiral Storage API (presigned multipart uploads)",
        keys: R2Kind().specs, givesURLs: true)

    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    package init(_ values: ConfigSection) throws(SettingFault) {
        let values = Section(R2Kind(), values)
        allowHTTP = values.allowHTTP
        api = try values.neededAddress(\.api, allowHTTP: allowHTTP)
        try DestinationKinds.requireOwn(api, values.keyName(\.api), Self.type)
        publicURL = try values.address(\.publicURL, allowHTTP: allowHTTP)
        dialect = values.dialect
        apiKey = values.apiKey
        (partSize, largestPart) = try PartPlan.sizes(values, \.partSize)
        parallelParts = values.parallelParts
        verify = values.verify
        trust = Trust(caFile: values.caFile)
        connections = values.connections
        maxInFlight = values.maxInFlight
        if dialect == .v1, apiKey?.isEmpty ?? true { throw values.fault(\.apiKey, "is needed for dialect v1") }
    }
}

package struct R2Kind: DestinationKind {
    let api = Key("api", .string, required: true, "Address of the API, such as https://storage.example.")
    let dialect = Key(
        "dialect", .choice(R2Settings.Dialect.self), default: .v1,
        "Generation of the API. v1 has keys and single PUTs; r2 and seed are older.")
    let apiKey = Key("api_key", .secret, "API key, which dialect v1 sends as X-API-Key with every call.")
    let partSize = Key(
        "part_size", .bytesOrAuto, default: "auto",
        "Size of a part, 5MiB to 4GiB. auto: 8MiB to 64MiB, by the rate. Parts grow for files over 1,000 parts."
    )
    let parallelParts = Key(
        "parallel_parts", .integer(1...64), default: 8, "Most parts of one file sent at once. A slow line gets fewer.")
    let publicURL = Key(
        "public_url", .string,
        "Address where people can read objects. Inlet looks objects up there, and names it in receipts.")
    let verify = Key(
        "verify", .choice(R2Settings.Verify.self), default: .md5,
        "md5 compares the ETag of each part with its MD5. size is for stores whose ETags are not MD5.")
    let allowHTTP = Key.allowHTTP
    let caFile = TrustKeys.caFile
    let connections = Key("connections", .integer(1...256), default: 32, "Most small files sent at once.")
    let maxInFlight = Key(
        "max_in_flight", .integer(1...64), "Most large files sent at once to this destination; workers applies too.")
    let bandwidth = BandwidthKeys()
    let proxy = ProxyKeys.key()

    package var type: DestinationType { R2Settings.type }
    package var pipeline: any Pipeline.Type { R2Pipeline.self }

    /// Calls of the API, which a person may have copied with its address. Another server may have folders of these
    /// names: it is a guess.
    package func claim(host: String, path: String) -> AddressClaim? {
        let calls = [["v1", "multipart"], ["v1", "presign"], ["v1", "objects"], ["r2", "multipart"]]
        let names = path.split(separator: "/")
        // The call, or the call and its verb, ends the path.
        for length in [2, 3] where names.count >= length {
            let call = names.suffix(length)
            guard calls.contains(call.prefix(2).map(String.init)), let first = call.first else { continue }
            return AddressClaim(
                key: api.spec.name, path: path[..<path.index(before: first.startIndex)],
                words: "a call of the Spiral Storage API", isCertain: false)
        }
        return nil
    }

    package func make(
        _ destination: DestinationSettings, _ factory: PipelineFactory
    ) throws(SettingFault) -> Destination {
        let settings = try R2Settings(destination.values)
        let pipeline = R2Pipeline(
            settings: settings,
            client: try factory.client(for: destination, settings.trust, connections: settings.connections),
            hashing: factory.pool)
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: settings.partSize,
            connections: settings.connections, maxInFlight: settings.maxInFlight)
        made.setAddress(settings.api)
        made.server = (settings.api, settings.trust)
        return made
    }

    package var setup: DestinationSetup {
        DestinationSetup(
            name: "r2", place: "Cloudflare R2 through the Spiral Storage API", words: ["spiral"],
            questions: [
                .init(
                    "api", "Address of the Spiral Storage API?", help: "the address of the API",
                    example: "https://storage.example.com"),
                .init("api_key", "Its API key", .secret(variable: "SPIRAL_KEY")),
            ],
            hints: [
                "public_url: \"https://cdn.example.com\"   # where stored objects can be read", "parallel_parts: 8",
                "bandwidth: 20MiB/s",
            ], route: DestinationSetup.mirrored,
            example: "--watch /srv/drop --to r2 --api https://storage.example.com --env api_key=SPIRAL_KEY")
    }
}

// MARK: - Looking at what was delivered

extension R2Pipeline: DeliveryVerifying {
    /// One byte through a presigned URL (dialect v1), or a HEAD below `public_url`; a GET of either for all bytes.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        if order.isForRemoval, settings.dialect != .v1 {
            // A cache may answer there, with an object that is gone.
            return .cannotTell("dialect \(settings.dialect.rawValue) reads objects at public_url only")
        }
        let url: HTTPURL
        do throws(DeliveryError) {
            url = try await location(of: order.proof.key)
        } catch {
            switch error.code {
            case .notFound: return .missing("there is no such object")
            case .badRequest where error.verdict == .giveUp: return .cannotTell(error.reason)
            default: throw error
            }
        }
        let what = "looking up \(url.redacted)"
        if order.comparesBytes {
            let (verification, answer) = try await api.client.check(HTTPRequest("GET", url), order)
            if let verification { return verification }
            return try Self.missing(answer, what)
        }
        let (answer, size) = try await api.look(at: url)
        if let size { return order.compare(size: size, etag: answer.header("ETag")) }
        guard answer.isSuccess else { return try Self.missing(answer, what) }
        return .cannotTell("\(url.redacted) does not say how long it is")
    }

    private static func missing(_ answer: HTTPResponse, _ what: String) throws(DeliveryError) -> Verification {
        if answer.status == 404 || answer.status == 410 { return .missing("there is no such object") }
        throw DeliveryError.ofStore(answer, what)
    }
}

extension R2Pipeline: ObjectReading {
    /// Through a presigned URL, renewed before each request (dialect v1), or below `public_url`.
    package func fetch(_ key: String, _ order: FetchOrder) async throws(DeliveryError) -> Downloaded {
        try await Fetching(client: api.client, pool: hashing.pool).run(order) { attempt async throws(DeliveryError) in
            HTTPRequest("GET", try await location(of: key), headers: attempt.headers)
        }
    }

    /// The object's address for reading. - Throws: `.notFound`; `.badRequest` where this destination has no such call.
    func location(of key: String) async throws(DeliveryError) -> HTTPURL {
        if settings.dialect == .v1 {
            if let text = try await api.objectURL(key) { return try api.checked(text) }
            throw DeliveryError(
                .giveUp, .notFound, "\(settings.api.redacted) has no object '\(DisplayText.escape(key))'")
        }
        guard let base = settings.publicURL else {
            throw DeliveryError(
                .giveUp, .badRequest,
                "dialect \(settings.dialect.rawValue) has no call that reads objects; set public_url on this destination"
            )
        }
        return base.appending(path: key)
    }
}

/// Delivers to Cloudflare R2 through the Spiral Storage API: presigned multipart uploads that survive a restart, and a
/// single presigned PUT for small files where the dialect has one.
package struct R2Pipeline: PartPipeline {
    let settings: R2Settings
    let api: SpiralAPI
    /// Sends file contents, as fast as the destination's limit allows.
    private let client: HTTPClient
    let hashing: HashLanes
    private let lane = UploadLane()

    /// Files up to this many bytes are sent by single PUT in dialect v1, as its clients do.
    static let singleLimit: Int64 = 5 << 20

    package init(settings: R2Settings, client: HTTPClient, hashing: BlockingPool) {
        self.settings = settings
        self.hashing = HashLanes(on: hashing)
        self.client = client
        // Its requests are small. Probes and aborts must get their answers even while nothing may be sent.
        api = SpiralAPI(settings: settings, client: client.limited(by: nil))
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        let sender = PartSender(
            client: client, source: source, order: order, attempt: attempt, hashing: hashing,
            lane: lane, proof: settings.verify == .md5 ? .md5 : .size)
        if let proof = try await api.checkSource(sender) { return .delivered(proof) }
        // An upload that another dialect opened continues: nothing else would drop it.
        if settings.dialect == .v1, order.source.size <= Self.singleLimit,
            UploadRecord.identity(attempt.checkpoint.entries) == nil
        {
            let proof = try await sender.sendWhole(at: api.location(order.key, answered: nil)) {
                () async throws(DeliveryError) in
                let url = try api.checked(try await api.presign(order))
                return PresignedTarget(url: url, headers: [("Content-Type", order.mediaType)])
            }
            return .delivered(proof)
        }
        return .delivered(try await MultipartUpload(store: api, sender: sender).deliver())
    }

    func store(_ order: DeliveryOrder, _ notes: [String: [UInt8]]) -> any PartStore { api }

    /// Asks for something that does not exist. Only where any program could give that answer, it opens an upload of one
    /// part and drops it.
    package func probe() async throws(DeliveryError) -> String {
        let said = "\(settings.api.redacted) answers, dialect \(settings.dialect.rawValue)"
        if try await api.answers() { return said }
        let order = DeliveryOrder(
            id: 0, destination: "", key: ".inlet-check", mediaType: "application/octet-stream", fields: [:],
            source: FileIdentity(size: 0, modified: 0, changed: 0, inode: 0, device: 0))
        let upload = try await api.create(order, count: 1)
        try await api.abort(id: upload.id, key: upload.key)
        return said
    }
}
