package import InletCore
internal import InletLinux
package import InletTransfer
package import SystemPackage

/// The settings of a `type: vopi` destination: a VOPI server, which makes product pictures from a video.
package struct VOPISettings: Sendable {
    /// One of the two, never both: a server that gets both rejects both.
    package enum Login: Sendable, Equatable {
        /// `x-api-key`, for servers before 2026-01-23.
        case apiKey(Secret)
        /// `Authorization: Bearer`. The file holds the first refresh token; the agent keeps later ones.
        case tokens(seed: FilePath)
    }

    package var url: HTTPURL
    package var login: Login
    /// The shortest wait between two polls of a job.
    package var poll: Duration
    /// Holds a folder for each job.
    package var results: FilePath
    /// Defaults for a route's `with:`.
    package var job: VOPIJobConfig
    package var callbackURL: String?
    /// How long a job may take before Inlet reports it.
    package var softLimit: Duration
    /// How long a job may take before it counts as stuck.
    package var hardLimit: Duration
    /// How long an upload may make no progress.
    package var noProgress: Duration
    package var maxInFlight: Int
    package var allowHTTP: Bool
    package var trust: Trust

    /// For URLs in the server's answers.
    package var linkRules: URLRules { .sentByServer(at: url, allowHTTP: allowHTTP) }

    package static let type = DestinationType(
        name: "vopi", summary: "a VOPI server, which turns product videos into pictures",
        keys: VOPIKind().specs,
        fields: fields, takesSidecars: false)

    private static let fields = [
        FieldSpec("fps", "Frames that the server looks at per second of video, 1 to 30."),
        FieldSpec("batch_size", "Frames that the server judges at once, 1 to 100."),
        FieldSpec(
            "commercial_versions", "Any of \(VOPIJobConfig.versions.joined(separator: ", ")), separated by commas."),
        FieldSpec("ai_cleanup", "true or false."),
        FieldSpec("gemini_model", "Model that looks at the frames."),
        FieldSpec("stack_id", "Chain of processors, such as classic."),
        FieldSpec("callback_url", "Address where the server reports the finished job."),
        FieldSpec("estimated_duration", "Length of the video in seconds. The server checks the credits for it first."),
    ]

    /// - Throws: `SettingFault` naming the key with the unusable value.
    package init(_ values: ConfigSection) throws(SettingFault) {
        let values = Section(VOPIKind(), values)
        allowHTTP = values.allowHTTP
        url = try values.neededAddress(\.url, allowHTTP: allowHTTP)
        login = try Self.login(values)
        guard let folder = values.results, !folder.isEmpty else { throw values.fault(\.results, "is missing") }
        results = folder
        job = try VOPIJobConfig(values.job)
        callbackURL = values.callbackURL
        if let text = callbackURL, let objection = Self.objection(toCallback: text, at: url) {
            throw values.fault(\.callbackURL, objection)
        }
        poll = values.poll
        guard poll >= .seconds(1) else { throw values.fault(\.poll, "must be at least 1s") }
        softLimit = values.softLimit
        hardLimit = values.hardLimit
        guard hardLimit >= softLimit else {
            throw values.fault(\.hardLimit, "must not be shorter than soft_limit")
        }
        noProgress = values.noProgress
        guard noProgress >= .seconds(1) else { throw values.fault(\.noProgress, "must be at least 1s") }
        maxInFlight = values.maxInFlight
        trust = Trust(caFile: values.caFile)
    }

    private static func login(_ values: Section<VOPIKind>) throws(SettingFault) -> Login {
        let file = values.auth.refreshTokenFile.flatMap { $0.isEmpty ? nil : $0 }
        let key = values.auth.apiKey
        switch (key, file) {
        case (nil, let file?): return .tokens(seed: file)
        case (let key?, nil) where !key.isEmpty: return .apiKey(key)
        case (.some, .some):
            throw values.fault(\.auth, "takes api_key or refresh_token_file, not both")
        default: throw values.fault(\.auth, "needs api_key or refresh_token_file")
        }
    }

    /// Why the server would refuse a job's callback URL, judged by its text; nil when it would accept it. The server
    /// accepts loopback addresses in development only, where its own address is one.
    package static func objection(toCallback text: String, at server: HTTPURL) -> String? {
        do {
            let callback = try HTTPURL(text, rules: .configured(allowHTTP: true))
            guard callback.isLoopback, !server.isLoopback else { return nil }
            return "names a loopback address, which the server cannot reach"
        } catch {
            return SettingFault.words(error)
        }
    }
}

/// `auth:`
struct VOPIAuthKeys: KeyTable {
    let apiKey = Key("api_key", .secret, "API key for servers before 2026-01-23, sent as x-api-key.")
    let refreshTokenFile = Key(
        "refresh_token_file", .path, "File with the refresh token of a login. Renewed tokens are in state_dir/tokens.")
}

package struct VOPIKind: DestinationKind {
    let url = Key("url", .string, required: true, "Address of the server, such as https://api.vopi.example.")
    let auth = Key("auth", VOPIAuthKeys(), required: true, "Login: one of the two keys.")
    let poll = Key("poll", .duration, default: "3s", "First wait between two looks at a job, from 1s. It grows to 30s.")
    let results = Key("results", .path, required: true, "Folder for the results; each job gets a folder below it.")
    let job = Key("job", VOPIJobKeys(), "Options of every job, unless a route's 'with' sets its own.")
    let callbackURL = Key(
        "callback_url", .string, "Address where the server reports finished jobs. No delivery depends on it.")
    let softLimit = Key("soft_limit", .duration, default: "1h", "Inlet reports a job that takes longer.")
    let hardLimit = Key(
        "hard_limit", .duration, default: "6h", "Inlet cancels a job that takes longer, and creates it anew once.")
    let noProgress = Key("no_progress", .duration, default: "60s", "How long an upload may make no progress.")
    let maxInFlight = Key(
        "max_in_flight", .integer(1...64), default: 2, "Most videos uploaded at once. Running jobs do not count.")
    let caFile = TrustKeys.caFile
    let allowHTTP = Key.allowHTTP
    let bandwidth = BandwidthKeys()
    let proxy = ProxyKeys.key()

    package var type: DestinationType { VOPISettings.type }
    package var pipeline: any Pipeline.Type { VOPIPipeline.self }

    /// Each upload takes a worker; running jobs are polled in the lane of small files.
    package func make(
        _ destination: DestinationSettings, _ factory: PipelineFactory
    ) throws(SettingFault) -> Destination {
        let api = try factory.vopiAPI(destination)
        let client = try factory.client(for: destination, api.settings.trust)
        var made = Destination(
            name: destination.name, type: destination.type,
            pipeline: VOPIPipeline(api: api, client: client, pool: factory.pool), smallLimit: -1, connections: 16,
            maxInFlight: api.settings.maxInFlight)
        made.setAddress(api.settings.url)
        made.server = (api.settings.url, api.settings.trust)
        made.testExtension = "mp4"
        made.untried = "no test video is sent, as every job costs credits; 'inlet send' of a video tries it"
        made.results = api.settings.results
        made.accessToken = { refused async throws(DeliveryError) in try await api.accessToken(after: refused) }
        made.keepAlive = { () async throws(DeliveryError) in try await api.tokens?.keepAlive() }
        made.expiry = { now in
            guard let tokens = api.tokens, let time = await tokens.lastRenewal() else { return nil }
            return Destination.loginWarning(
                renewedAt: time, lasts: Self.loginLife, remedy: tokens.remedy, now: now)
        }
        return made
    }

    /// A login expires after this long without renewal; Inlet renews daily.
    private static let loginLife = Duration.seconds(7 * 86_400)

    /// Leaves out the upload URL, and the public URL where it is signed.
    package func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]? {
        guard name == UploadRecord.openingName, var upload = VOPIRecord.Upload(note) else { return nil }
        let isSigned = upload.publicURL.contains("?")
        if upload.url.isEmpty, !isSigned { return nil }
        upload.url = ""
        if isSigned { upload.publicURL = "" }
        return JSON.note(of: upload)
    }

    package var setup: DestinationSetup {
        DestinationSetup(
            name: "products", place: "A VOPI server",
            questions: [
                .init(
                    "url", "Address of the VOPI server?", help: "the server's address", example: "https://vopi.example"),
                .init(
                    "refresh_token_file", "File with the refresh token of a login (empty: an API key)?", .path,
                    help: "a file with the refresh token of a login", example: "vopi.token", need: .never, in: "auth"),
                .init(
                    "api_key", "Its API key", .secret(variable: "VOPI_KEY"), need: .insteadOf("refresh_token_file"),
                    in: "auth"),
                .init(
                    "results", "Folder for what it makes of the videos?", .path, help: "the folder for what it makes",
                    example: "/nonexistent/results"),
            ],
            hints: [
                "job: { commercial_versions: [transparent] }   # of transparent, solid, real, creative",
                "                                              # a job costs 1 credit or more; more kinds may cost more",
            ],
            route: ["match: { extensions: [mp4, m4v, mov, webm] }", "validate: { max_size: 5GiB }"],
            renewedLogin: "refresh_token_file")
    }

    // MARK: - Order

    /// How many kinds of pictures are ordered for each video; the server charges credits for them.
    package func remarks(on destination: DestinationSettings, _ routes: [Route]) -> [SettingFinding] {
        // Unreadable options were refused when the destination was made.
        guard let job = try? VOPIJobConfig(job.value(in: destination.values)) else { return [] }
        var remarks = [(true, "orders " + Self.kinds(job.orderedVersions))]
        for route in routes where route.to.contains(destination.name) {
            // The destination's options are the defaults.
            guard let text = route.with["commercial_versions"]?.text, !text.allSatisfy(\.isWhitespace) else { continue }
            remarks.append(Self.remark(on: text, of: "route \(route.name)", job))
        }
        return remarks
    }

    private static func remark(on text: String, of route: String, _ job: VOPIJobConfig) -> SettingFinding {
        if text.contains("{") { return (true, "\(route) orders the kinds of pictures that '\(text)' names") }
        var job = job
        job.commercialVersions = VOPIJobConfig.versions(in: text)
        if let (_, reason) = job.objection() { return (false, "\(route): \(reason)") }
        return (true, "\(route) orders " + kinds(job.orderedVersions))
    }

    private static func kinds(_ ordered: [String]) -> String {
        "\(ordered.count) of \(VOPIJobConfig.versions.count) kinds of pictures for each video: "
            + ordered.joined(separator: ", ")
    }
}

// MARK: - Command line

extension PipelineFactory {
    /// - Parameter borrowing: gives access tokens instead of the login's own, and another one after the server refused
    ///   one; for processes other than the agent.
    package func vopiAPI(
        _ destination: DestinationSettings,
        borrowing: (@Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret)? = nil
    ) throws(SettingFault) -> VOPIAPI {
        let settings = try VOPISettings(destination.values)
        guard let tokens else {
            throw SettingFault(key: "auth", message: "needs a state_dir to keep the login in")
        }
        return VOPIAPI(
            settings, name: destination.name, client: try client(settings.trust, of: destination), pool: pool,
            tokens: tokens, borrowing: borrowing)
    }

    /// Fetches the results of any job.
    package func vopiResults(_ api: VOPIAPI) -> VOPIResults {
        VOPIResults(api: api, client: api.client, pool: pool)
    }
}

// MARK: - Verifying deliveries

extension VOPIPipeline: DeliveryVerifying {
    package var findsByKey: Bool { false }

    /// Checks the result files that `product.json` lists. The server does not keep the video, and may forget a job
    /// after its results were fetched.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        guard let id = order.proof.details?["job_id"] else { return .cannotTell("there is no job of it") }
        let folder = VOPIResults.folder(of: id, in: api.settings)
        let readsBytes = order.readsBytes
        let found = try await pool.run { () throws(DeliveryError) in
            do throws(SystemError) { return try Self.look(folder, readsBytes: readsBytes) } catch {
                return try Verification(error)
            }
        }
        guard case .same(let files, _) = found else { return found }
        let isKnown = try await DeliveryError.ignoring(.notFound, in: await api.status(id)) != nil
        return .same(isKnown ? "\(files), job \(id)" : "\(files); the server no longer knows job \(id)")
    }

    private static func look(_ folder: FilePath, readsBytes: Bool) throws(SystemError) -> Verification {
        let list = folder.appending(VOPIProduct.name)
        let place = try VOPIResults.open("", in: folder)
        guard let product = VOPIValue(try place.read(VOPIProduct.fileName, limit: 64 << 20)), product.isObject else {
            return .differs("\(list.display) is not the JSON that it was")
        }
        for file in product["files"].list {
            guard let name = file["path"].text else { continue }
            let path = folder.pushing(FilePath(name))
            guard let last = path.lastComponent else { continue }
            let above = try place.folder(FilePath(name).removingLastComponent())
            guard let size = try above.look(last).identity?.size else {
                return .missing("\(path.display) is not there")
            }
            if let wanted = file["size"].integer, size != wanted {
                return .differs("\(path.display) has \(size) bytes, not \(wanted)")
            }
            if readsBytes, let wanted = file["sha256"].text {
                let found = try VOPIProduct.sha256(SourceFile(opening: last, in: above))
                if found != wanted { return .differs("\(path.display) has the sha256 \(found), not \(wanted)") }
            }
        }
        if let missing = missing(product) { return .missing(missing) }
        return .same("\(product["files"].list.count) files of results" + (readsBytes ? ", all bytes read" : ""))
    }

    /// Results that the job listed but never delivered; nil where none are missing.
    private static func missing(_ product: VOPIValue) -> String? {
        let names = product["missing"].list.compactMap(\.text)
        guard !names.isEmpty || product["complete"].boolean == false else { return nil }
        let there = product["files"].list.count
        let all = max(product["expected"].integer ?? 0, there + names.count)
        let shown = names.prefix(5).map { DisplayText.escape($0) } + (names.count > 5 ? ["…"] : [])
        return "\(all - there) of \(all) results never came"
            + (shown.isEmpty ? "" : ": " + shown.joined(separator: ", "))
            + "; 'inlet vopi download \(product["job"].text ?? "JOB")' fetches them"
    }
}
