import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// The control calls: what they are told, and what of it is believed.
@Suite(.timeLimit(.minutes(15))) struct R2ControlTests {
    private static let whole = Place.part + 1

    private static let newer = #"{"content_type":"video/mp4","key":"videos/clip.mp4","parts":3}"#

    @Test(arguments: [
        ("seed", "/r2/multipart", #"{"key":"videos/clip.mp4","part_count":3}"#), ("r2", "/r2/multipart", newer),
        ("v1", "/v1/multipart", newer),
    ])
    func `as many parts are announced as then arrive, in each dialect's own words`(
        _ dialect: String, _ calls: String, _ announced: String
    ) async throws {
        let received = Listing<ReceivedRequest>()
        let server = try Self.server(received)
        let api = ConfigValue.string("http://127.0.0.1:\(server.port)")
        try await withPlace(.r2(dialect), settings: ["api": api]) { place in
            let (path, order) = try place.file(2 * Place.part + 77)
            _ = try await place.deliver(path, order).get()
        }
        let create = try #require(received.all.first)
        #expect(create.line == "POST \(calls)/create HTTP/1.1")
        #expect(String(decoding: create.body, as: UTF8.self) == announced)
        let parts = received.all.filter { $0.line.hasPrefix("PUT ") }.sorted { $0.line < $1.line }
        #expect(parts.map(\.line) == (1...3).map { "PUT /part/\($0) HTTP/1.1" })
        #expect(Data(parts.flatMap(\.body)) == content(2 * Place.part + 77))
        #expect(server.connections > 0)
    }

    /// A store that keeps what it is sent as it came, and has addresses for three parts.
    private static func server(_ received: Listing<ReceivedRequest>) throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                received.add(request)
                let origin = "http://\(request.headers["host"] ?? "")"
                if request.line.hasPrefix("PUT ") {
                    try connection.answer(headers: "ETag: \"\(Checksum.md5(request.body).hex)\"\r\n")
                } else if request.line.contains("/create ") {
                    let parts = (1...3).map { #"{"part_number":\#($0),"url":"\#(origin)/part/\#($0)"}"# }
                    try connection.answer(
                        "200 OK", #"{"upload_id":"u","parts":[\#(parts.joined(separator: ","))]}"#)
                } else {
                    try connection.answer("200 OK", #"{"object_url":"\#(origin)/clip.mp4"}"#)
                }
            }
        }
    }

    @Test(arguments: [FaultAction.PartURLs.fewer, .more, .renumbered])
    func `a list of URLs that is not the one asked for is refused`(_ list: FaultAction.PartURLs) async throws {
        for dialect in ["seed", "r2", "v1"] {
            try await withPlace(.r2(dialect), faults: Fault(.partURLs(list), at: .create)) { place in
                let (path, order) = try place.file(Self.whole)
                expectError(try await place.failure(path, order), .giveUp, code: .badPartList)
                #expect(place.count(.part) == 0)
                #expect(try place.leftovers() == [])
            }
        }
    }

    @Test(arguments: ["http://storage.example", "ftp://127.0.0.1", "https://user:word@127.0.0.1", "https:///nowhere"])
    func `a URL that leads elsewhere is refused, and its upload dropped`(_ origin: String) async throws {
        try await withPlace(.r2("v1"), faults: Fault(.partURLs(.origin(origin)), at: .create)) { place in
            let (path, order) = try place.file(Self.whole)
            let error = try await place.failure(path, order)
            #expect(error?.code == .forbiddenURL || error?.code == .insecureURL)
            #expect(error?.verdict == .giveUp)
            #expect(error?.reason.contains("word") == false)
            #expect(place.count(.part) == 0)
            #expect(try place.leftovers() == [])
        }
    }

    static let verdicts: [(FaultAction, DeliveryError.Verdict, ErrorCode)] = [
        (.status(400), .giveUp, .badRequest), (.status(401), .credentials, .unauthorized),
        (.status(403), .credentials, .unauthorized), (.status(404), .retry(after: nil), .notFound),
        (.status(409), .giveUp, .conflict), (.status(413), .giveUp, .tooLarge),
        (.status(422), .giveUp, .badRequest), (.status(429, retryAfter: 7), .retry(after: .seconds(7)), .throttled),
        (.status(500), .retry(after: nil), .serverError),
        (.status(503, retryAfter: 30), .outage(after: .seconds(30)), .serverError),
        (.html, .retry(after: nil), .badAnswer), (.garbage, .retry(after: nil), .badAnswer),
        (.redirect(to: "https://elsewhere.example/"), .giveUp, .redirected),
        (.endlessAnswer, .retry(after: nil), .answerTooLarge),
        (.reset(afterBytes: 0), .outage(after: nil), .connectionLost),
    ]

    @Test(arguments: verdicts) func `every answer to create has its verdict`(
        _ action: FaultAction, _ verdict: DeliveryError.Verdict, _ code: ErrorCode
    ) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .create)) { place in
            let (path, order) = try place.file(Self.whole)
            expectError(try await place.failure(path, order), verdict, code: code)
            _ = try await place.deliver(path, order).get()
        }
    }

    @Test func `a port where nobody listens is an outage, for the probe too`() async throws {
        try await withPlace(.r2("v1"), settings: ["api": .string("http://127.0.0.1:1")]) { place in
            let (path, order) = try place.file(10)
            expectError(try await place.failure(path, order), .outage(after: nil), code: .connectFailed)
            let probed = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
            #expect(probed?.verdict == .outage(after: nil))
        }
    }

    @Test func `the probe opens no upload`() async throws {
        for dialect in ["seed", "r2", "v1"] {
            try await withPlace(.r2(dialect)) { place in
                let said = try await place.pipeline.probe()
                #expect(said.contains("answers"))
                #expect(place.count(.create) == 0 && place.count(.objectURL) + place.count(.abort) == 1)
                place.misbehave(.status(503), at: .objectURL, .abort)
                let error = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
                #expect(error?.verdict == .outage(after: nil))
                let words = FaultReply(404, body: "no such object")
                place.misbehave(.reply(words), at: .objectURL, .abort)
                _ = try await place.pipeline.probe()
                #expect(place.count(.create) == 0)
            }
        }
    }

    static let strange: [FaultAction] = [
        .html, .garbage, .reply(FaultReply(404, type: "text/html", body: "<title>Not Found</title>")), .status(500),
    ]

    @Test(arguments: strange.indices)
    func `an answer to the probe that anybody may give is asked about again, in words that are the API's own`(
        _ index: Int
    ) async throws {
        for (dialect, operation) in [("seed", SpiralOperation.abort), ("r2", .abort), ("v1", .objectURL)] {
            try await withPlace(.r2(dialect)) { place in
                place.misbehave(Self.strange[index], at: operation)
                let said = try await place.pipeline.probe()
                #expect(said.contains("answers"))
                #expect(place.count(.create) == 1)
                #expect(try place.leftovers() == [])
                place.misbehave(Self.strange[index], at: operation)
                place.misbehave(Self.strange[index], at: .create)
                await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
            }
        }
    }

    @Test func `a wrong key is a matter of credentials, and is not shown`() async throws {
        let key = ConfigValue.secret(Secret("wrong-canary-88e1"))
        try await withPlace(.r2("v1"), settings: ["api_key": key]) { place in
            for count in [10, Self.whole] {
                let (path, order) = try place.file(count)
                let error = expectError(try await place.failure(path, order), .credentials)
                #expect("\(String(describing: error))".contains("canary") == false)
            }
            let probed = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
            #expect(probed?.verdict == .credentials)
        }
    }

    static let anywhere: [FaultAction] = [
        .status(400), .status(403), .status(404), .status(500), .html, .garbage, .missingETag, .wrongETag(.random),
        .expiredURLs, .loseAnswer, .redirect(to: "https://elsewhere.example/?X-Amz-Signature=00"),
        .reset(afterBytes: 10), .partURLs(.more), .partURLs(.origin("http://storage.example")),
    ]

    @Test(arguments: anywhere)
    func `no error and no proof carries a signature or the key`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1")) { place in
            for operation in [SpiralOperation.create, .part, .complete, .presign, .single, .objectURL, .read] {
                place.sandbox?.faults.add(Fault(action, at: operation))
            }
            for count in [10, Self.whole, 10, Self.whole, Self.whole, Self.whole] {
                let (path, order) = try place.file(count)
                let said: String
                switch try await place.deliver(path, order) {
                case .success(let proof): said = String(decoding: try JSONEncoder().encode(proof), as: UTF8.self)
                case .failure(let error): said = String(reflecting: error)
                }
                #expect(!said.contains("X-Amz"), "\(said)")
                #expect(!said.contains(Place.apiKey), "\(said)")
            }
            #expect(place.sandbox?.faults.injected ?? 0 >= 3)
        }
    }
}

/// The call that makes the object, and everything that can happen to its answer.
@Suite(.timeLimit(.minutes(15))) struct R2CompletionTests {
    private static let whole = Place.part + 1

    @Test(arguments: [("v1", false), ("r2", true), ("seed", true)])
    func `an answer that is lost is found out without sending a part again`(_ dialect: String, _ isPublic: Bool)
        async throws
    {
        try await withPlace(.r2(dialect), faults: Fault(.loseAnswer, at: .complete), isPublic: isPublic) { place in
            let (path, order) = try place.file(Self.whole, key: "a b/100%+ü.bin")
            let proof = try await place.deliver(path, order).get()
            #expect(proof.method == .md5Parts)
            #expect(place.count(.part) == 2)
            #expect(place.count(.create) == 1)
            #expect(place.sandbox?.objects().map(\.versions) == [1])
            #expect(place.count(.read) == 1)
        }
    }

    @Test(arguments: [true, false])
    func `what was composed counts, although the source is gone since`(_ isComposed: Bool) async throws {
        try await withPlace(.r2("v1"), faults: Fault(.loseAnswer, at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            #expect(try await place.pipeline.conclude(path, order, notes.attempt()) == nil)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            try FileManager.default.removeItem(atPath: path.string)
            var entries = notes.entries
            // Without it the store was never asked.
            if !isComposed { entries[CheckpointName.mayBeVisible] = nil }
            let ended = try await place.pipeline.conclude(path, order, Notes(entries).attempt())
            if case .delivered(let proof) = ended {
                #expect(isComposed && proof.method == .md5Parts)
            } else {
                #expect(!isComposed && ended == nil)
            }
        }
    }

    @Test func `where nothing tells, the same key is sent once more`() async throws {
        try await withPlace(.r2("r2"), faults: Fault(.loseAnswer, at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), code: .uploadGone)
            #expect(notes.entries.keys.sorted() == [CheckpointName.mayBeVisible])
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test func `an upload that is gone without an object is sent again`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(404), at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), .retry(after: nil), code: .uploadGone)
            #expect(notes.entries.keys.sorted() == [CheckpointName.mayBeVisible])
            _ = try await place.deliver(path, order, notes.attempt()).get()
        }
    }

    @Test(arguments: [(Implementation.r2("v1"), FaultAction.status(404)), (.s3(), .reply(.s3(404, "NoSuchUpload")))])
    func `another object under the key is not taken for ours`(_ store: Implementation, _ gone: FaultAction) async throws
    {
        try await withPlace(store) { place in
            let old = try place.write(content(Self.whole, seed: 2), "old.bin")
            _ = try await place.deliver(old, try place.order(old, key: "same")).get()
            place.misbehave(gone, at: .complete)
            let (path, order) = try place.file(Self.whole, key: "same")
            let notes = Notes()
            #expect(try await place.failure(path, order, notes.attempt())?.code == .uploadGone)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.visible() == ["same": content(Self.whole)])
        }
    }

    @Test(arguments: [FaultAction.html, .garbage, .status(500), .status(409), .endlessAnswer, .reset(afterBytes: 0)])
    func `an answer that proves nothing is asked for again`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.complete) == 2)
            #expect(place.count(.part) == 2)
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test(arguments: [FaultAction.html, .garbage, .status(500), .status(409)])
    func `an answer that never proves anything ends the attempt, and the parts stay`(_ action: FaultAction) async throws
    {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .complete, times: 3)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), .retry(after: nil))
            #expect(notes.provedParts == 2)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.part) == 2)
        }
    }

    @Test func `a store that refuses bare tags gets them as it sent them`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(400), at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.complete) == 2)
        }
        try await withPlace(.r2("v1"), faults: Fault(.status(400), at: .complete, times: 2)) { place in
            let (path, order) = try place.file(Self.whole)
            expectError(try await place.failure(path, order), .giveUp, code: .badRequest)
        }
    }

    @Test(arguments: [Implementation.r2("v1"), .s3()])
    func `what was composed counts, although the source has changed since`(_ store: Implementation) async throws {
        try await withPlace(store) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            // The object is there; the process died before its journal heard of it.
            _ = try await place.deliver(path, order, notes.attempt()).get()
            try touch(path, at: 3)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test func `what was not composed is not, once the source has changed`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(500), at: .complete, times: 3)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            _ = try await place.failure(path, order, notes.attempt())
            try touch(path, at: 3)
            #expect(try await place.failure(path, order, notes.attempt())?.verdict == .sourceChanged)
            try await place.pipeline.abandon(order, checkpoint: notes.entries)
            #expect(try place.visible() == [:])
            #expect(try place.leftovers() == [])
        }
    }
}
