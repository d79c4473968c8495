import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// A successor on another machine: its own pipeline, and of its predecessor's notes only those that are handed over.
@Suite(.timeLimit(.minutes(15))) struct TakeoverTests {
    private static let part = Place.part
    /// VOPI's successor may have to wait for minutes: `VOPITakeoverTests` move its clock.
    private static let prompt = Implementation.all.filter { $0.type != "vopi" }

    // MARK: - Every kind

    @Test(arguments: prompt, DyingNotes.Moment.allCases)
    func `a successor continues with what was handed over, whenever its predecessor died`(
        _ implementation: Implementation, _ moment: DyingNotes.Moment
    ) async throws {
        // With no note at all it dies before the first.
        for count in (moment == .afterNote ? 1 : 0)...20 {
            let outlived = Switch()
            try await withPlace(implementation, isPublic: true) { place in
                let (path, order) = try place.file(Self.part + 1)
                let dying = DyingNotes([:], notes: count, moment)
                _ = try await Task { try await place.deliver(path, order, dying.attempt()) }.value
                if !dying.hasDied { outlived.turnOn() }
                let handed = try Self.handedOver(place, dying.entries)
                let proof = try await Self.deliver(place, path, order, handed)
                let what: Comment = "died at note \(count), \(moment)"
                #expect(proof.key == order.key && proof.size == order.source.size, what)
                #expect(try place.visible() == [order.key: place.expected(order, Self.part + 1)], what)
                // An upload that no note tells of ends by itself at the store.
                if moment == .afterNote { #expect(try place.leftovers() == [], what) }
            }
            if outlived.isOn { return }
        }
        Issue.record("there is no end of notes")
    }

    @Test(arguments: Implementation.all)
    func `what was delivered before its agent could say so is delivered, and not sent again`(
        _ implementation: Implementation
    ) async throws {
        try await withPlace(implementation, isPublic: true) { place in
            let (path, order) = try place.file(Self.part + 1)
            let notes = Notes()
            let proof = try await place.deliver(path, order, notes.attempt()).get()
            let sent = (place.count(.create), place.count(.part), place.count(.single))
            let again = try await Self.deliver(place, path, order, try Self.handedOver(place, notes.entries))
            #expect(again.key == proof.key && again.size == proof.size)
            #expect(try place.visible() == [order.key: place.expected(order, Self.part + 1)])
            #expect(try place.leftovers() == [])
            if place.s3 != nil || place.sandbox != nil || place.gigHive != nil || place.vopi != nil {
                #expect((place.count(.create), place.count(.part), place.count(.single)) == sent)
            }
            if again.content?.digest.algorithm == proof.content?.digest.algorithm {
                #expect(again.content == proof.content)
            }
        }
    }

    @Test(arguments: Implementation.all)
    func `notes that no version of Inlet has written stay here, and do no harm there`(
        _ implementation: Implementation
    ) async throws {
        let noise = Array("{\"canary-9\":-9223372036854775808}".utf8)
        let names = ["lock_token", "answer", "trouble", "results", "offset", "second-secret"]
        try await withPlace(implementation) { place in
            let strange = names.reduce(into: Notes.Entries()) { $0[$1] = noise }
            let handed = place.pipeline.handedOver(strange)
            #expect(handed.values.allSatisfy { !String(decoding: $0, as: UTF8.self).contains("canary-9") })
            let (path, order) = try place.file(Self.part + 1)
            let upload =
                #"{"upload":{"id":"../x","key":"\#(order.key)","partURLs":[]},"plan":{"fileSize":\#(Self.part + 1),"#
            // Each delivery to VOPI makes a job.
            for partSize in place.vopi == nil ? ["0", "-1", "1", "\(Int64.max)"] : ["0"] {
                let note = Array((upload + #""partSize":\#(partSize)}}"#).utf8)
                _ = try await Self.deliver(place, path, order, ["upload": note, CheckpointName.mayBeVisible: []])
            }
            #expect(try place.visible() == [order.key: place.expected(order, Self.part + 1)])
        }
    }

    // MARK: - Parts

    private static let parts = [
        Implementation.s3("md5"), .s3("crc64nvme"), .s3("crc32c"), .s3("sha256"), .s3("size"),
        .s3("md5", ifExists: "fail"), .s3("md5", ifExists: "version"),
    ]

    @Test(arguments: parts) func `exactly the missing parts are sent`(_ implementation: Implementation) async throws {
        try await withPlace(implementation, settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(9 * Self.part + 9)
            let handed = try await Self.cut(place, path, order, after: "part:3")
            #expect(Set(handed.keys) == ["upload"])
            let attempt = Notes(handed).attempt()
            _ = try await place.deliver(path, order, attempt, by: try place.again()).get()
            #expect(place.s3?.traffic.partOrder == Array(1...10))
            #expect(place.count(.create) == 1)
            #expect(attempt.bytesSent == order.source.size)
            #expect(try place.visible() == [order.key: content(9 * Self.part + 9)])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: [Implementation.r2("seed"), .r2("r2"), .r2("v1"), .r2("v1", verify: "size")])
    func `an API without a list of parts gets a new upload, and the old one is dropped`(
        _ implementation: Implementation
    ) async throws {
        try await withPlace(implementation, settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(3 * Self.part)
            let handed = try await Self.cut(place, path, order, after: "part:2")
            #expect(Set(handed.keys) == ["upload"])
            _ = try await place.deliver(path, order, Notes(handed).attempt(), by: try place.again()).get()
            #expect(place.sandbox?.traffic.partOrder == [1, 2, 1, 2, 3])
            #expect(place.count(.create) == 2 && place.count(.abort) == 1)
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `bytes of the same length under the key are not the file`() async throws {
        for implementation in [Implementation.r2("v1"), .s3("md5"), .s3("crc32c")] {
            try await withPlace(implementation, isPublic: true) { place in
                let other = try place.write(content(2 * Self.part, seed: 2), "other.bin")
                _ = try await place.deliver(other, try place.order(other, key: "a")).get()
                let (path, order) = try place.file(2 * Self.part, key: "a")
                var handed = try await Self.cut(place, path, order, after: "upload")
                try await place.pipeline.abandon(order, checkpoint: handed)
                handed[CheckpointName.mayBeVisible] = []
                _ = try await place.deliver(path, order, Notes(handed).attempt(), by: try place.again()).get()
                #expect(try place.visible() == [order.key: content(2 * Self.part)])
            }
        }
    }

    // MARK: - Helpers

    /// What a successor gets of `entries`: no secret is in it, and it gives the same to the next one.
    static func handedOver(_ place: Place, _ entries: Notes.Entries) throws -> Notes.Entries {
        let handed = place.pipeline.handedOver(entries)
        #expect(place.pipeline.handedOver(handed) == handed)
        let answer = try JSONSerialization.jsonObject(with: Data(entries["answer"] ?? Array("{}".utf8)))
        let token = (answer as? [String: Any])?["deleteToken"] as? String
        let secrets = [
            Place.apiKey, S3Account.secretKey.reveal(), GigHivePlace.password, RoboscopePlace.token, "X-Amz-Signature",
            "://",
        ]
        for (name, note) in handed {
            let text = String(decoding: note, as: UTF8.self).replacing("\\/", with: "/")
            // Of VOPI the name of the video, of GigHive the call that was answered.
            let isURL = place.vopi != nil && name == "upload" || place.gigHive != nil && name == "answer"
            for secret in secrets where !(isURL && secret == "://") { #expect(!text.contains(secret), "\(name)") }
            if let token { #expect(!text.contains(token), "\(name)") }
        }
        return handed
    }

    /// The notes that another agent gets of an attempt that ended once `note` was written.
    static func cut(
        _ place: Place, _ path: FilePath, _ order: DeliveryOrder, after note: String
    ) async throws -> Notes.Entries {
        let (notes, isStopping) = (Notes(), Switch())
        let attempt = notes.attempt(
            noted: { if $0.contains(note) { isStopping.turnOn() } }, isStopping: { isStopping.isOn })
        #expect(try await place.failure(path, order, attempt)?.verdict == .cancelled)
        return try handedOver(place, notes.entries)
    }

    /// Attempts of a successor.
    private static func deliver(
        _ place: Place, _ path: FilePath, _ order: DeliveryOrder, _ handed: Notes.Entries
    ) async throws -> Proof {
        let (notes, pipeline) = (Notes(handed), try place.again())
        var last: DeliveryError?
        for _ in 1...3 {
            switch try await place.deliver(path, order, notes.attempt(), by: pipeline) {
            case .success(let proof): return proof
            case .failure(let error): last = error
            }
        }
        throw try #require(last)
    }
}

/// Takeovers of S3 uploads at the moments that matter.
@Suite(.timeLimit(.minutes(15))) struct S3TakeoverTests {
    private static let count = 2 * Place.part + 1

    @Test(arguments: ["overwrite", "fail", "version"])
    func `an upload that the store no longer knows is begun anew`(_ ifExists: String) async throws {
        try await withPlace(.s3("md5", ifExists: ifExists)) { place in
            let (path, order) = try place.file(Self.count)
            let handed = try await TakeoverTests.cut(place, path, order, after: "part:1")
            try await place.pipeline.abandon(order, checkpoint: handed)
            let proof = try await place.deliver(path, order, Notes(handed).attempt(), by: try place.again()).get()
            #expect(proof.key == order.key && place.count(.create) == 2)
            #expect(place.s3?.objects().map(\.versions) == [1])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: ["md5", "crc64nvme", "crc32c", "sha256", "size"])
    func `a predecessor that died before it asked for the object has sent everything`(_ verify: String) async throws {
        try await withPlace(.s3(verify)) { place in
            let (path, order) = try place.file(Self.count)
            let handed = try await Self.cutBeforeComplete(place, path, order)
            let proof = try await place.deliver(path, order, Notes(handed).attempt(), by: try place.again()).get()
            #expect(proof.method == (verify == "size" ? .size : .md5Parts))
            #expect(place.count(.part) == 3 && place.count(.complete) == 1)
            #expect(try place.visible() == [order.key: content(Self.count)])
        }
    }

    @Test(arguments: ["overwrite", "fail", "version"])
    func `a completion whose answer nobody heard is found by looking`(_ ifExists: String) async throws {
        try await withPlace(.s3("md5", ifExists: ifExists)) { place in
            place.misbehave(.loseAnswer, at: .complete)
            // The predecessor's own looks end in nothing.
            place.s3?.faults.add(S3Fault(.status(503), at: .headObject, times: 1))
            let (path, order) = try place.file(Self.count)
            let notes = Notes()
            let handed: Notes.Entries
            if ifExists == "overwrite" {
                #expect(try await place.failure(path, order, notes.attempt()) != nil)
                handed = try TakeoverTests.handedOver(place, notes.entries)
            } else {
                place.behave()
                _ = try await place.deliver(path, order, notes.attempt()).get()
                handed = try TakeoverTests.handedOver(place, notes.entries)
            }
            let before = place.count(.complete)
            let proof = try await place.deliver(path, order, Notes(handed).attempt(), by: try place.again()).get()
            #expect(proof.key == order.key && proof.method == .md5Parts)
            #expect(place.count(.part) == 3 && place.count(.complete) == before)
            #expect(place.s3?.objects().map(\.versions) == [1])
        }
    }

    @Test(arguments: ["fail", "version"], [true, false])
    func `an equal object that comes first is the delivery's own`(_ ifExists: String, _ isSeen: Bool) async throws {
        try await withPlace(.s3("md5", ifExists: ifExists)) { place in
            let (path, order) = try place.file(Self.count)
            let handed = try await Self.cutBeforeComplete(place, path, order)
            // The predecessor was merely late. What its successor has looked at by then may be old.
            let hasCome = Switch()
            let attempt = Notes(handed).attempt(noted: { names in
                guard names.contains(CheckpointName.mayBeVisible), !hasCome.isOn else { return }
                hasCome.turnOn()
                #expect((try? await place.deliver(path, order).get()) != nil)
                if !isSeen { place.s3?.faults.add(S3Fault(.reply(.s3(404, "NoSuchKey")), at: .headObject)) }
            })
            let proof = try await place.deliver(path, order, attempt, by: try place.again()).get()
            #expect(proof.key == order.key)
            #expect(place.s3?.objects().map(\.versions) == [1])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: [true, false]) func `another object that comes first stays`(_ isSeen: Bool) async throws {
        try await withPlace(.s3("md5", ifExists: "fail")) { place in
            let (path, order) = try place.file(Self.count)
            let handed = try await Self.cutBeforeComplete(place, path, order)
            let other = try place.write(content(1000, seed: 2), "other.bin")
            let second = try place.order(other, key: order.key)
            let (notes, hasCome) = (Notes(handed), Switch())
            let attempt = notes.attempt(noted: { names in
                guard names.contains(CheckpointName.mayBeVisible), !hasCome.isOn else { return }
                hasCome.turnOn()
                #expect((try? await place.deliver(other, second).get()) != nil)
                if !isSeen { place.s3?.faults.add(S3Fault(.reply(.s3(404, "NoSuchKey")), at: .headObject)) }
            })
            let source = try SourceFile(opening: path)
            let error = await #expect(throws: DeliveryError.self) {
                try await place.again().deliver(source, order, attempt)
            }
            expectError(error, .giveUp, code: .destinationExists)
            #expect(try place.visible() == [order.key: content(1000, seed: 2)])
            #expect(try place.leftovers() == [])
            #expect(Set(notes.entries.keys) == [CheckpointName.mayBeVisible])
        }
    }

    /// What is handed over of an attempt that died between the note of its last step and the step.
    private static func cutBeforeComplete(
        _ place: Place, _ path: FilePath, _ order: DeliveryOrder
    ) async throws -> Notes.Entries {
        let dying = DyingNotes([:], notes: 5, .afterNote)
        _ = try await Task { try await place.deliver(path, order, dying.attempt()) }.value
        #expect(dying.hasDied && place.count(.complete) == 0 && place.count(.part) == 3)
        let handed = try TakeoverTests.handedOver(place, dying.entries)
        #expect(Set(handed.keys) == ["upload", CheckpointName.mayBeVisible])
        return handed
    }
}

/// Temporary files of predecessors, which may be late.
@Suite struct FolderTakeoverTests {
    /// What a killed predecessor leaves: its temporary file, and the note of it.
    private static func killed(_ place: Place) throws -> Notes.Entries {
        let name = ".clip.mp4.inlet-0a1b2c3d.tmp"
        let folder = place.target.pushing("videos")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        try content(500).write(to: URL(fileURLWithPath: folder.appending(name).string))
        return try TakeoverTests.handedOver(place, ["copying": Array(name.utf8)])
    }

    @Test func `a predecessor's temporary file stays until the delivery has its name`() async throws {
        for implementation in [Implementation.folder("read-back"), .folder("size")] {
            try await withPlace(implementation) { place in
                let (path, order) = try place.file(1000)
                let notes = Notes(try Self.killed(place))
                let seen = Listing<[String]>()
                let attempt = notes.attempt(noted: { _ in seen.add((try? place.leftovers()) ?? []) })
                _ = try await place.deliver(path, order, attempt, by: try place.again()).get()
                #expect(seen.all == [["videos/.clip.mp4.inlet-0a1b2c3d.tmp"]])
                #expect(try place.visible() == [order.key: content(1000)])
                #expect(try place.leftovers() == [])
            }
        }
    }

    @Test func `it goes too where the predecessor had given the name, and where the delivery is given up`() async throws
    {
        try await withPlace(.folder("read-back")) { place in
            let (path, order) = try place.file(1000)
            _ = try await place.deliver(path, order).get()
            let handed = try Self.killed(place)
            _ = try await place.deliver(path, order, Notes(handed).attempt(), by: try place.again()).get()
            #expect(try place.leftovers() == [])
            let other = try Self.killed(place)
            for _ in 1...2 { try await place.again().abandon(order, checkpoint: other) }
            #expect(try place.leftovers() == [])
            #expect(try place.visible() == [order.key: content(1000)])
        }
    }

    @Test func `every successor knows all of them, and each removes its own first`() async throws {
        try await withPlace(.folder("read-back")) { place in
            let (path, order) = try place.file(1000)
            let first = try Self.killed(place)
            let own = place.target.pushing("videos/.clip.mp4.inlet-11111111.tmp")
            try content(10).write(to: URL(fileURLWithPath: own.string))
            let second = first.merging(["copying": Array(".clip.mp4.inlet-11111111.tmp".utf8)]) { $1 }
            let seen = Listing<Int>()
            let again = Notes(second).attempt(noted: { _ in seen.add((try? place.leftovers().count) ?? 0) })
            let handed = try TakeoverTests.handedOver(place, second)
            _ = try await place.deliver(path, order, again).get()
            #expect(seen.all == [1])
            try content(10).write(to: URL(fileURLWithPath: own.string))
            _ = try Self.killed(place)
            _ = try await place.deliver(path, order, Notes(handed).attempt(), by: try place.again()).get()
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `no note of another agent removes anything but temporary files of this name`() async throws {
        try await withPlace(.folder("read-back")) { place in
            let (path, order) = try place.file(1000)
            for name in ["videos/other.mp4", "videos/.other.mp4.inlet-0a1b2c3d.tmp"] {
                let (other, second) = try place.file(10, key: name)
                _ = try await place.deliver(other, second).get()
            }
            let (source, third) = try place.file(1000)
            #expect(source == path)
            let handed = ["left": Array("other.mp4/.other.mp4.inlet-0a1b2c3d.tmp/.././/".utf8)]
            _ = try await place.deliver(path, third, Notes(handed).attempt(), by: try place.again()).get()
            #expect(try place.visible().keys.sorted() == [order.key, "videos/other.mp4"])
            #expect(try place.leftovers() == ["videos/.other.mp4.inlet-0a1b2c3d.tmp"])
        }
    }

    @Test func `without room for both, a file that may still be written stays`() async throws {
        try await withPlace(.folder("read-back"), settings: ["min_free": .bytes(1 << 60)]) { place in
            let (path, order) = try place.file(1000)
            let handed = try Self.killed(place)
            expectError(
                try await place.failure(path, order, Notes(handed).attempt()), .outage(after: nil),
                code: .destinationFull)
            #expect(try place.leftovers() == ["videos/.clip.mp4.inlet-0a1b2c3d.tmp"])
        }
    }
}
