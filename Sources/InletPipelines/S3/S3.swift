package import InletCore
internal import InletLinux
package import InletTransfer
package import SystemPackage

/// The settings of a `type: s3` destination: a bucket of AWS S3, Cloudflare R2, MinIO, Ceph, or another store that
/// speaks S3.
package struct S3Settings: Sendable {
    /// How arrived bytes are verified.
    package enum Verify: String, Sendable, CaseIterable {
        /// The cheapest of the next four that the store was seen to compare (`S3ChecksumTrial`); never `size`.
        case auto
        /// Sent before the body; the store compares.
        case crc64nvme
        case crc32c
        case sha256
        /// ETags must be the MD5 of what was read.
        case md5
        /// An ETag must be there; only lengths are compared.
        case size

        /// The checksum sent before the body.
        var algorithm: Digest.Algorithm? {
            switch self {
            case .crc64nvme: .crc64nvme
            case .crc32c: .crc32c
            case .sha256: .sha256
            case .auto, .md5, .size: nil
            }
        }

        /// Whether only the content shows that an object is the file's own. Other takes can have its length and time.
        var needsContent: Bool { self == .auto || self == .md5 }
    }

    /// What to do when another object has the key.
    package enum IfExists: String, Sendable, CaseIterable {
        case overwrite
        /// Nothing is sent when the object there has the same content.
        case skipSame = "skip-same"
        /// Stored beside it, as `name_2.ext`.
        case version
        case fail

        /// Whether another object under the key must stay.
        var keepsOthers: Bool { self == .version || self == .fail }
    }

    /// The bucket's address, to which keys are appended.
    package var base: HTTPURL
    package var bucket: String
    package var endpoint: HTTPURL
    package var region: String
    /// The smallest parts where the line decides.
    package var partSize: Int64
    /// Larger than `partSize` with `part_size: auto`.
    package var largestPart: Int64
    package var multipartThreshold: Int64
    /// Longer files are refused before anything is sent.
    package var maxObjectSize: Int64
    package var parallelParts: Int
    package var verify: Verify
    package var ifExists: IfExists
    /// Sent with every new object: cache-control, storage class, ACL, metadata.
    package var objectHeaders: [(name: String, value: String)]
    package var publicURL: HTTPURL?
    package var trust: Trust
    /// nil where the delay of answers decides (`AnswerPace`).
    package var connections: Int?
    package var maxInFlight: Int?
    let credentials: CredentialsSource

    /// Limits of the store (AWS, "Amazon S3 multipart upload limits"): one PUT takes up to 5 GiB.
    static let largestPut: Int64 = 5 << 30
    static let mostParts: Int64 = 10_000
    /// The largest number of parts, each as long as a PUT may be.
    static let largestComposed = mostParts * largestPut

    package init(_ values: ConfigSection) throws(SettingFault) {
        try self.init(
            values, environment: { ProcessSetup.environment($0) }, home: ProcessSetup.homeDirectory)
    }

    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    init(_ values: ConfigSection, environment: (String) -> String?, home: FilePath?) throws(SettingFault) {
        let values = Section(S3Kind(), values)
        let rules = URLRules.configured(allowHTTP: values.allowHTTP)
        bucket = values.bucket ?? ""
        guard Self.isBucket(bucket) else {
            throw values.fault(\.bucket, "must be the name of a bucket, without slashes")
        }
        endpoint = try Self.endpoint(values.endpoint, region: values.region, rules)
        base = try Self.base(endpoint, bucket: bucket, values.style, rules)
        region = values.region == "auto" ? Self.region(of: endpoint) : values.region
        publicURL = try values.address(\.publicURL, allowHTTP: values.allowHTTP)
        (partSize, largestPart) = try PartPlan.sizes(values, \.partSize)
        multipartThreshold = values.multipartThreshold
        guard (0...Self.largestPut).contains(multipartThreshold) else {
            throw values.fault(\.multipartThreshold, "must be at most 5GiB (limit of the store)")
        }
        maxObjectSize = values.maxObjectSize
        guard (1...Self.largestComposed).contains(maxObjectSize) else {
            throw values.fault(\.maxObjectSize, "must be at most 50000GiB (10,000 parts of 5GiB)")
        }
        parallelParts = values.parallelParts
        verify = values.verify
        ifExists = values.ifExists
        objectHeaders = try Self.objectHeaders(values)
        trust = try Trust(values.trust)
        connections = values.connections
        maxInFlight = values.maxInFlight
        credentials = try CredentialsSource(values, environment: environment, home: home)
    }

    private static func objectHeaders(_ values: Section<S3Kind>) throws(SettingFault) -> HTTPFields {
        var headers: HTTPFields = []
        for (key, name) in [
            (\S3Kind.cacheControl, "cache-control"), (\.storageClass, "x-amz-storage-class"), (\.acl, "x-amz-acl"),
        ] {
            guard let value = values[dynamicMember: key], !value.isEmpty else { continue }
            guard isPlain(value) else { throw values.fault(key, "must be printable ASCII") }
            headers.append((name, value))
        }
        for (name, value) in (values.metadata ?? [:]).sorted(by: { $0.key < $1.key }) {
            let name = name.lowercased()
            let isName = name.utf8.allSatisfy { $0 == UInt8(ascii: "_") || Self.isHostByte($0) }
            guard !name.isEmpty, isName, isPlain(value) else {
                throw values.fault(
                    \.metadata, "must have names of letters, digits and '-', and values of printable ASCII")
            }
            guard name != "mtime" else {
                throw values.fault(\.metadata, "must not set 'mtime', which is written for every file")
            }
            headers.append(("x-amz-meta-\(name)", value))
        }
        return headers
    }

    private static func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { (0x20...0x7E).contains($0) } }

    package static let type = DestinationType(
        name: "s3", summary: "a bucket of AWS S3, Cloudflare R2, MinIO or any other store that speaks S3",
        keys: S3Kind().specs, givesURLs: true, names: .keep)
}

package struct S3Kind: DestinationKind {
    let bucket = Key("bucket", .string, required: true, "Name of the bucket, which must exist.")
    let endpoint = Key(
        "endpoint", .string,
        "Address of the store, such as https://ACCOUNT.r2.cloudflarestorage.com. Without it, AWS in 'region'.")
    let region = Key(
        "region", .string, default: "auto",
        "Region in signatures. auto takes it from the endpoint, else 'auto' for R2 and us-east-1 for others."
    )
    let style = Key(
        "style", .choice(S3Settings.Style.self), default: .auto,
        "Place of the bucket's name: in the path, or before the host (virtual). auto is virtual for AWS, else path.")
    let accessKey = Key(
        "access_key", .secret, "Access key. Without it, Inlet uses the environment or a credentials file.")
    let secretKey = Key("secret_key", .secret, "Secret key of access_key.")
    let sessionToken = Key("session_token", .secret, "Session token of temporary keys.")
    let profile = Key(
        "profile", .string, "Profile of the credentials file. Inlet reads it again when the store refuses its keys.")
    let credentialsFile = Key(
        "credentials_file", .path,
        "Credentials file of the AWS tools. Without it, AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials.")
    let multipartThreshold = Key(
        "multipart_threshold", .bytes, default: "16MiB", "Largest file that goes in one request, up to 5GiB.")
    let partSize = Key(
        "part_size", .bytesOrAuto, default: "auto",
        "Size of a part, 5MiB to 4GiB. auto: 8MiB to 64MiB, by the rate. Parts grow for files over 10,000 parts."
    )
    let maxObjectSize = Key(
        "max_object_size", .bytes, default: "5TiB",
        "Largest object that the store takes. Larger files fail before Inlet sends anything.")
    let parallelParts = Key(
        "parallel_parts", .integer(1...64), default: 8, "Most parts of one file sent at once. A slow line gets fewer.")
    let verify = Key(
        "verify", .choice(S3Settings.Verify.self), default: .auto,
        "auto: the cheapest that Inlet saw the store compare. md5 compares ETags. For crc64nvme, crc32c and sha256 the "
            + "store confirms the checksum. size compares lengths."
    )
    let ifExists = Key(
        "if_exists", .choice(S3Settings.IfExists.self), default: .overwrite,
        "When the key is taken: overwrite, skip-same (equal objects are not sent again), version (name_2.ext) or fail. "
            + "version and fail need a store that honours If-None-Match.")
    let storageClass = Key("storage_class", .string, "Storage class of new objects, such as STANDARD_IA.")
    let cacheControl = Key("cache_control", .string, "Cache-Control of new objects.")
    let metadata = Key("metadata", .texts, "User metadata of new objects. Inlet always adds mtime.")
    let acl = Key("acl", .string, "Canned ACL of new objects. Without it, Inlet sends none.")
    let publicURL = Key("public_url", .string, "Address where people can read objects, for receipts.")
    let allowHTTP = Key.allowHTTP
    let connections = Key(
        "connections", .integer(1...AnswerPace.most),
        "Small files sent at once. Without it 32, and up to 384 where answers come late.")
    let maxInFlight = Key(
        "max_in_flight", .integer(1...64), "Most large files sent at once to this destination; workers applies too.")
    let trust = TrustKeys()
    let bandwidth = BandwidthKeys()
    let proxy = ProxyKeys.key()

    package var type: DestinationType { S3Settings.type }
    package var pipeline: any Pipeline.Type { S3Pipeline.self }

    package func make(
        _ destination: DestinationSettings, _ factory: PipelineFactory
    ) throws(SettingFault) -> Destination {
        let settings = try S3Settings(destination.values)
        let address = Destination.address(type.name, settings.endpoint, settings.bucket)
        let pipeline = S3Pipeline(
            settings: settings,
            client: try factory.client(
                for: destination, settings.trust, connections: settings.connections ?? AnswerPace.most),
            hashing: factory.pool, knowledge: S3StoreKnowledge(checksums: factory.checksums, address: address))
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline,
            smallLimit: settings.multipartThreshold, connections: settings.connections ?? AnswerPace.least,
            maxInFlight: settings.maxInFlight)
        made.setAddress(settings.endpoint, settings.bucket)
        made.server = (settings.base, settings.trust)
        if settings.verify == .auto {
            made.checksumFindings = { () async throws(DeliveryError) in try await pipeline.askAgain() }
        }
        made.serverPin = { () async throws(DeliveryError) in try await pipeline.serverPin() }
        return made
    }

    package func claim(host: String, path: String) -> AddressClaim? {
        guard S3Settings.isCloudflare(host) else { return nil }
        // The path that Cloudflare shows behind it is a bucket.
        return AddressClaim(key: endpoint.spec.name, path: "", words: "Cloudflare R2's own S3 address", isCertain: true)
    }

    package func remarks(on destination: DestinationSettings, _ routes: [Route]) -> [SettingFinding] {
        DestinationKinds.doubt(about: destination).map { [(false, "'\($0.key)' perhaps \($0.message)")] } ?? []
    }

    package func usualFiles(home: FilePath) -> [FilePath] { [CredentialsSource.usualFile(home: home)] }

    package var setup: DestinationSetup {
        DestinationSetup(
            name: "bucket", place: "A bucket: Cloudflare R2, AWS S3, MinIO, Backblaze B2, Wasabi…",
            words: ["amazon", "ceph", "garage", "storj", "hetzner", "object", "storage"],
            questions: [
                .init(
                    "endpoint", "Address of the store (empty: AWS)?", help: "the address of the store; AWS without it",
                    example: "https://s3.example.com", need: .never),
                .init("bucket", "Name of the bucket?", help: "the bucket", example: "media"),
                .init(
                    "region", "Its region (empty: as its address says; AWS needs one)?", help: "its region",
                    example: "auto", need: .unless("endpoint")),
                .init("access_key", "The access key", .secret(variable: "S3_ACCESS_KEY")),
                .init("secret_key", "The secret key", .secret(variable: "S3_SECRET_KEY")),
            ],
            hints: [
                "storage_class: STANDARD_IA", "if_exists: overwrite         # overwrite | skip-same | version | fail",
                "bandwidth: 20MiB/s",
            ], route: DestinationSetup.mirrored,
            example: "--watch /srv/drop --to s3 --endpoint https://s3.example.com --bucket media")
    }
}

// MARK: - Looking at what was delivered

extension S3Pipeline: DeliveryVerifying {
    /// HeadObject; GetObject where bytes must be read.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        let key = order.proof.key
        do throws(DeliveryError) {
            guard let found = try await api.head(key) else { return .missing("there is no such object") }
            guard order.comparesBytes, found.size == order.proof.size else {
                return order.compare(size: found.size, etag: found.etag)
            }
        } catch {
            guard error.isDenied else { throw error }
            return .cannotTell("these keys may not read the bucket")
        }
        let request = try api.signed(S3API.Call(method: "GET", key: key))
        let (verification, answer) = try await api.client.check(request, order)
        if let verification { return verification }
        if answer.status == 404 { return .missing("there is no such object") }
        throw api.refusal(answer, "reading \(api.url(key).redacted)")
    }
}

extension S3Pipeline: ObjectReading {
    /// GetObject; every request is signed again, with its range.
    package func fetch(_ key: String, _ order: FetchOrder) async throws(DeliveryError) -> Downloaded {
        try await Fetching(client: api.client, pool: hashing.pool).run(order) { attempt async throws(DeliveryError) in
            if let status = attempt.refusal, status == 401 || status == 403 {
                throw DeliveryError(
                    .credentials, .unauthorized,
                    "fetching \(api.url(key).redacted) was answered with \(status): these keys may not read it, or there "
                        + "is no such object and they may not list the bucket")
            }
            return try api.signed(S3API.Call(method: "GET", key: key, headers: attempt.headers))
        }
    }
}

/// The place of a bucket: endpoint, style and region (AWS, "Virtual hosting of buckets").
extension S3Settings {
    enum Style: String, Sendable, CaseIterable {
        case auto
        /// `https://endpoint/bucket/key`
        case path
        /// `https://bucket.endpoint/key`
        case virtual
    }

    /// A name that can stand in a path; stores differ in what else they accept.
    static func isBucket(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 255 && name != "." && name != ".."
            && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#%\\@:".utf8.contains($0) }
    }

    /// The configured endpoint, or AWS's in the region.
    static func endpoint(_ text: String?, region: String?, _ rules: URLRules) throws(SettingFault) -> HTTPURL {
        if let text {
            let url = try HTTPURL(text, "endpoint", rules)
            try DestinationKinds.requireOwn(url, "endpoint", type)
            return url
        }
        guard let region, region != "auto" else {
            throw SettingFault(key: "endpoint", message: "is missing; set it, or 'region' for AWS")
        }
        guard region.utf8.allSatisfy({ isHostByte($0) }) else {
            throw SettingFault(key: "region", message: "is not the name of a region")
        }
        let suffix = region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
        return try HTTPURL("https://s3.\(region).\(suffix)", "region", rules)
    }

    static func base(
        _ endpoint: HTTPURL, bucket: String, _ style: Style, _ rules: URLRules
    ) throws(SettingFault) -> HTTPURL {
        let isVirtual =
            switch style {
            case .path: false
            case .virtual: true
            // A bucket with dots does not match AWS's certificate.
            case .auto: isAmazon(endpoint.host) && !bucket.contains(".")
            }
        guard isVirtual else { return endpoint.appending(path: bucket) }
        let prefix = "\(endpoint.scheme)://"
        return try HTTPURL("\(prefix)\(bucket).\(endpoint.redacted.dropFirst(prefix.count))", "bucket", rules)
    }

    /// The region in an endpoint's name: `s3.eu-west-1.amazonaws.com`, `s3.us-west-004.backblazeb2.com`.
    static func region(of endpoint: HTTPURL) -> String {
        let labels = endpoint.host.split(separator: ".").filter { $0 != "dualstack" }
        if isCloudflare(endpoint.host) { return "auto" }
        let isAddress = labels.allSatisfy { $0.allSatisfy(\.isNumber) } || endpoint.host.contains(":")
        return !isAddress && labels.count >= 4 && labels[0] == "s3" ? String(labels[1]) : "us-east-1"
    }

    /// Whether this host is the S3 address of a Cloudflare account, which takes keys of its buckets only.
    static func isCloudflare(_ host: String) -> Bool {
        (host.hasSuffix(".") ? String(host.dropLast()) : host).hasSuffix(".r2.cloudflarestorage.com")
    }

    private static func isAmazon(_ host: String) -> Bool {
        [".amazonaws.com", ".amazonaws.com.cn"].contains { host.hasSuffix($0) }
    }

    static func isHostByte(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
    }
}
