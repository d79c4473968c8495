import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// A contender behind a `ChaosProxy`, with one file to deliver.
struct MatrixPlace: Sendable {
    var pipeline: any Pipeline
    /// The same destination, by https.
    var overTLS: any Pipeline
    var source: FilePath
    var order: DeliveryOrder
    /// nil where there is no network.
    var proxy: ChaosProxy?
    /// Has the server misbehave.
    var misbehave: @Sendable (FaultAction, MatrixStep, Int) -> Void = { _, _, _ in }
    /// Faults that the server has met.
    var faults: @Sendable () -> Int = { 0 }
    /// Checks that the file is there once and whole, or not at all.
    var check: @Sendable (_ isThere: Bool) throws -> Void
    /// What waits go by.
    var clock = HandClock()
    /// What made `pipeline`; nil where something else did.
    var factory: PipelineFactory?
    /// The destination is away, and back.
    var leave: @Sendable () throws -> Void
    var comeBack: @Sendable () throws -> Void
}

/// What the places of all kinds are made with.
struct MatrixGround: Sendable {
    let directory: TemporaryDirectory
    let factory: PipelineFactory
    let contender: Contender
    let longestStall: Duration?

    /// Bytes: more than any fault's place in them, and two parts where there shall be two.
    var size: Int { [.r2Parts, .s3Parts].contains(contender) ? Place.part + 1 : 100_000 }

    var server: FilePath { directory.path.appending("server") }

    func order(_ name: FilePath, _ bytes: Data, _ fields: [String: String] = [:]) throws -> (FilePath, DeliveryOrder) {
        let path = try directory.write(bytes, to: FilePath("drop").pushing(name))
        let order = DeliveryOrder(
            id: 1, destination: "here", key: "videos/clip.mp4", mediaType: "video/mp4", fields: fields,
            source: try SourceFile(opening: path).opened, path: name, root: directory.path.appending("drop"))
        return (path, order)
    }

    /// A place whose server is behind a proxy.
    ///
    /// - Parameter pipeline: made for an origin, such as `http://127.0.0.1:4711`.
    func place(
        _ file: (FilePath, DeliveryOrder), port: Int, _ pipeline: (String) throws -> any Pipeline,
        check: @escaping @Sendable (Bool) throws -> Void
    ) throws -> MatrixPlace {
        let proxy = try ChaosProxy(to: port)
        return MatrixPlace(
            pipeline: try pipeline("http://127.0.0.1:\(proxy.port)"),
            overTLS: try pipeline("https://127.0.0.1:\(proxy.port)"), source: file.0, order: file.1, proxy: proxy,
            check: check, factory: factory, leave: { proxy.close() }, comeBack: { try proxy.open() })
    }

    /// That `objects` are the order's file alone, or nothing.
    static func check(_ objects: [StoredObject], _ isThere: Bool, _ content: Data, once: Bool) throws {
        #expect(objects.count == (isThere ? 1 : 0))
        guard isThere, let object = objects.first else { return }
        #expect(object.key == "videos/clip.mp4")
        #expect(try Data(contentsOf: URL(fileURLWithPath: object.path.string)) == content)
        if once { #expect(object.versions == 1) }
    }
}

/// Runs `body` on a place of the contender's own.
///
/// - Parameter longestStall: as `HTTPClient` has it.
func withMatrix(
    _ contender: Contender, longestStall: Duration?, _ body: @escaping @Sendable (MatrixPlace) async throws -> Void
) async throws {
    let directory = try TemporaryDirectory()
    let factory = PipelineFactory(
        pool: BlockingPool(name: "matrix", threads: 4), userAgent: "inlet-tests/1",
        tokens: directory.path.appending("tokens"), longestStall: longestStall)
    defer { factory.shutdown() }
    let ground = MatrixGround(directory: directory, factory: factory, contender: contender, longestStall: longestStall)
    switch contender {
    case .r2Parts, .r2Other, .r2Single: try await ground.withSpiral(body)
    case .s3Parts, .s3Single: try await ground.withS3(body)
    case .form, .tus: try await ground.withGigHive(body)
    case .vopiKey, .vopiBearer: try await ground.withVOPI(body)
    case .model, .markers: try await ground.withRoboscope(body)
    case .folder: try await ground.withFolder(body)
    }
}

extension MatrixGround {
    typealias Body = @Sendable (MatrixPlace) async throws -> Void

    fileprivate func withSpiral(_ body: @escaping Body) async throws {
        let sandbox = try SpiralSandbox(directory: server, apiKey: Secret(Place.apiKey))
        let content = content(size)
        let isSingle = contender == .r2Single
        try await whileServing({ try await sandbox.run() }) {
            var place = try place(try order("clip.mp4", content), port: try await sandbox.port()) { origin in
                try factory.place(
                    "r2",
                    [
                        "api": .string(origin), "api_key": .secret(Secret(Place.apiKey)),
                        "dialect": .string(contender == .r2Other ? "r2" : "v1"), "part_size": .bytes(Int64(Place.part)),
                        "public_url": .string(origin + "/public"),
                    ])
            } check: { isThere in
                try Self.check(sandbox.objects(), isThere, content, once: !isSingle)
            }
            place.faults = { sandbox.faults.injected }
            place.misbehave = { action, step, times in
                let operation: SpiralOperation =
                    switch step {
                    case .open: isSingle ? .presign : .create
                    case .send: isSingle ? .single : .part
                    case .commit: isSingle ? .single : .complete
                    }
                sandbox.faults.add(Fault(action, at: operation, part: operation == .part ? 1 : nil, times: times))
            }
            try await body(place)
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }

    fileprivate func withS3(_ body: @escaping Body) async throws {
        let sandbox = try S3Sandbox(directory: server, account: S3Account.standard)
        let content = content(size)
        let isSingle = contender == .s3Single
        try await whileServing({ try await sandbox.run() }) {
            var place = try place(try order("clip.mp4", content), port: try await sandbox.port()) { origin in
                try factory.place(
                    "s3",
                    [
                        "endpoint": .string(origin), "bucket": .string("sandbox"),
                        "access_key": .secret(Secret(S3Account.accessKey)), "secret_key": .secret(S3Account.secretKey),
                        "part_size": .bytes(Int64(Place.part)), "multipart_threshold": .bytes(Int64(Place.part)),
                        "verify": .string("md5"),
                    ])
            } check: { isThere in
                try Self.check(sandbox.objects(), isThere, content, once: !isSingle)
            }
            place.faults = { sandbox.faults.injected }
            place.misbehave = { action, step, times in
                let operation: S3Operation =
                    switch step {
                    case .open: isSingle ? .putObject : .createMultipartUpload
                    case .send: isSingle ? .putObject : .uploadPart
                    case .commit: isSingle ? .putObject : .completeMultipartUpload
                    }
                sandbox.faults.add(
                    S3Fault(action, at: operation, part: operation == .uploadPart ? 1 : nil, times: times))
            }
            try await body(place)
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }

    fileprivate func withFolder(_ body: @escaping Body) async throws {
        let content = content(size)
        let library = try directory.makeDirectory("library")
        let away = directory.path.appending("unmounted")
        let (source, order) = try order("clip.mp4", content)
        let pipeline = try factory.place("folder", ["path": .string(library.string)])
        try await body(
            MatrixPlace(
                pipeline: pipeline, overTLS: pipeline, source: source, order: order,
                check: { isThere in
                    let names = try FileManager.default.subpathsOfDirectory(atPath: library.string)
                    #expect(names.sorted() == (isThere ? ["videos", "videos/clip.mp4"] : []))
                    let file = URL(fileURLWithPath: library.pushing(FilePath("videos/clip.mp4")).string)
                    if isThere { #expect(try Data(contentsOf: file) == content) }
                }, leave: { try FileManager.default.moveItem(atPath: library.string, toPath: away.string) },
                comeBack: { try FileManager.default.moveItem(atPath: away.string, toPath: library.string) }))
    }
}

/// Places of the services that do more than to store.
extension MatrixGround {
    func withGigHive(_ body: @escaping Body) async throws {
        let password = Secret(GigHivePlace.password)
        let sandbox = try GigHiveSandbox(
            directory: server, passwords: ["admin": password, "uploader": password, "viewer": password],
            rules: GigHiveRules(hookWait: .zero))
        let content = content(size)
        let isForm = contender == .form
        try await whileServing({ try await sandbox.run() }) {
            let file = try order("clip.mp4", content, ["label": "One", "org_name": "Band", "event_date": "2026-11-21"])
            var place = try place(file, port: try await sandbox.port()) { origin in
                try factory.place(
                    "gighive",
                    [
                        "url": .string(origin), "user": .string("uploader"), "password": .secret(password),
                        "transport": .string(isForm ? "multipart" : "tus"),
                    ])
            } check: { isThere in
                try Self.check(sandbox.assets(), isThere, content)
            }
            place.faults = { sandbox.faults.injected }
            place.misbehave = { action, step, times in
                let operation: GigHiveOperation =
                    switch step {
                    case .open: isForm ? .upload : .tusCreate
                    case .send: isForm ? .upload : .tusPatch
                    case .commit: isForm ? .upload : .finalize
                    }
                sandbox.faults.add(GigHiveFault(action, at: operation, times: times))
            }
            try await body(place)
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }

    private static func check(_ assets: [GigHiveAsset], _ isThere: Bool, _ content: Data) throws {
        #expect(assets.map(\.entries.count) == (isThere ? [1] : []))
        guard isThere, let asset = assets.first else { return }
        #expect(try Data(contentsOf: URL(fileURLWithPath: asset.path.string)) == content)
    }

    func withVOPI(_ body: @escaping Body) async throws {
        let clock = HandClock()
        let content = content(size)
        let sandbox = try VOPISandbox(
            directory: server, apiKey: Secret(VOPIPlace.apiKey), credits: 100,
            rules: VOPIRules(generation: contender == .vopiKey ? .apiKey : .bearer, pace: .polls(steps: 8)),
            clock: { clock.now })
        let seed = try directory.write(sandbox.signIn().refreshToken.reveal().utf8, to: "seed")
        let results = directory.path.appending("results")
        let client = HTTPClient(userAgent: "inlet-tests/1", longestStall: longestStall)
        defer { client.shutdown() }
        try await whileServing({ try await sandbox.run() }) {
            var place = try place(try order("clip.mp4", content), port: try await sandbox.port()) { origin in
                try vopi(origin, client, clock, seed: seed, results: results)
            } check: { isThere in
                try Self.check(sandbox, isThere, content, results)
            }
            place.clock = clock
            place.faults = { sandbox.faults.injected }
            place.misbehave = { action, step, times in
                let operation: VOPIOperation =
                    switch step {
                    case .open: .presign
                    case .send: .upload
                    case .commit: .createJob
                    }
                sandbox.faults.add(VOPIFault(action, at: operation, times: times))
            }
            // It logs in, which has tests of its own; what follows is on connections of its own.
            _ = try await place.pipeline.probe()
            place.proxy?.hangUp()
            try await body(place)
            // First, so that no connection of ours outlives its server.
            client.shutdown()
        }
    }

    private func vopi(
        _ origin: String, _ client: HTTPClient, _ clock: HandClock, seed: FilePath, results: FilePath
    ) throws -> any Pipeline {
        let login: [String: ConfigValue] =
            contender == .vopiKey
            ? ["api_key": .secret(Secret(VOPIPlace.apiKey))] : ["refresh_token_file": .string(seed.string)]
        let settings = try VOPISettings(
            section([
                "url": .string(origin), "auth": .section(section(login)), "results": .string(results.string),
            ]))
        let pool = BlockingPool(name: "vopi", threads: 4)
        // Two destinations keep two logins.
        let tokens = directory.path.appending(origin.hasPrefix("https") ? "tokens-tls" : "tokens")
        let api = VOPIAPI(settings, name: "products", client: client, pool: pool, tokens: tokens)
        return VOPIPipeline(api: api, client: client, pool: pool, now: { clock.now })
    }

    private static func check(_ sandbox: VOPISandbox, _ isThere: Bool, _ content: Data, _ results: FilePath) throws {
        let tally = sandbox.tally
        #expect(tally.jobs == (isThere ? 1 : 0) && tally.charges <= tally.jobs)
        guard isThere, let job = sandbox.jobs().first else { return }
        let video = try #require(sandbox.videos().first { $0.publicURL == job.videoURL })
        #expect(video.size == content.count && video.sha256 == Checksum.sha256(content))
        let folder = results.appending(job.id).string
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder)
        let fetched = Set(names.compactMap { FileManager.default.contents(atPath: folder + "/" + $0) })
        let pictures = try sandbox.pictures(of: job.id).map {
            try Data(contentsOf: URL(fileURLWithPath: $0.object.path.string))
        }
        #expect(!pictures.isEmpty && fetched.isSuperset(of: pictures))
    }

    func withRoboscope(_ body: @escaping Body) async throws {
        let token = Secret(RoboscopePlace.token)
        let sandbox = RoboscopeSandbox(token: token)
        let isModel = contender == .model
        try await whileServing({ try await sandbox.run() }) {
            var file = try order(
                isModel ? "atrium/model.glb" : "atrium/markers.json",
                isModel ? content(size) : Data(markerList(300).utf8),
                ["space": "atrium"])
            if isModel {
                let proof = Proof(key: "videos/clip.mp4", size: Int64(size), method: .md5Parts, url: "u:model")
                file.1.upstream = [
                    UpstreamDelivery(
                        destination: "spiral", path: file.1.path, mediaType: "model/gltf-binary", proof: proof)
                ]
            }
            var place = try place(file, port: try await sandbox.port()) { origin in
                try factory.place(
                    "roboscope",
                    ["url": .string(origin + "/api/v1"), "storage": .string("spiral"), "token": .secret(token)])
            } check: { isThere in
                #expect(sandbox.spaces().count == (isThere ? 1 : 0))
                if isModel { return #expect(sandbox.spaces().first?.modelGLBURL == (isThere ? "u:model" : nil)) }
                let stamps = sandbox.markers().compactMap { $0.customProps["ingest_id"]?.text }
                #expect(stamps.count == (isThere ? 300 : 0) && Set(stamps).count == stamps.count)
                #expect(sandbox.sessions().count == (isThere ? 1 : 0))
            }
            place.faults = { sandbox.faults.injected }
            place.misbehave = { action, step, times in
                let operation: RoboscopeOperation = step == .open ? .listSpaces : isModel ? .updateSpace : .bulkMarkers
                sandbox.faults.add(RoboscopeFault(action, at: operation, times: times))
            }
            try await body(place)
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }
}
