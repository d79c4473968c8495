import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

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
