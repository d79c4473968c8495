import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import InletTransfer
import Testing

/// Servers that repeat what they were sent, credentials and all, in their answers.
@Suite(.timeLimit(.minutes(5))) struct EchoTests {
    private static let canaries = [
        Place.apiKey, GigHivePlace.password, VOPIPlace.apiKey, RoboscopePlace.token, S3Account.accessKey,
    ].map(Canary.init)
    /// How JSON Web Tokens begin, the sandbox's access and refresh tokens among them.
    private static let tokens = [Canary("eyJhbGciOiJIUzI1NiI")]

    /// What is answered in the place of the work, and how it writes the request.
    private static let replies: [FaultReply] = {
        let echo = Echo.mark
        func padded(_ count: Int) -> String { String(repeating: "x ", count: count / 2) + echo }
        let refusal = #"{"error":"\#(echo)","message":"\#(echo)","details":[{"message":"\#(echo)"}]}"#
        func xml(_ code: String, _ text: String) -> String {
            "<Error><Code>\(code)</Code><Message>\(text)</Message><Region>\(echo)</Region>"
                + "<Endpoint>\(echo)</Endpoint></Error>"
        }
        return [0, 130, 170, 190].map { FaultReply(400, body: padded($0)) } + [
            FaultReply(400, type: "text/html", body: "<html><p>\(echo)</p></html>"),
            FaultReply(400, type: "application/json", body: refusal),
            FaultReply(400, type: "application/json", body: #"{"error":"NO","message":"\#(padded(180))"}"#),
            FaultReply(400, type: "application/xml", body: xml("InvalidArgument", padded(180))),
            FaultReply(400, type: "application/xml", body: xml("AuthorizationHeaderMalformed", "no")),
            FaultReply(400, type: "application/xml", body: xml(echo, "no")),
            FaultReply(200, type: "application/json", body: #"{"message":"\#(echo)","uploadId":"\#(echo)"}"#),
        ]
    }()

    private static let contenders: [Implementation] = [
        .r2("v1"), .s3(), .gigHive("multipart"), .gigHive("tus"), .vopi("api-key"), .vopi("bearer"), .roboscope,
    ]

    @Test(arguments: contenders)
    func `no credential comes back in an error, a note or a probe`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            var said: [String] = []
            for operation in [SpiralOperation.presign, .single, .create, .part, .complete, .objectURL] {
                for reply in Self.replies {
                    place.misbehave(.echo(reply), at: operation, times: 3)
                    let isLarge = [.create, .part, .complete].contains(operation) && implementation.sendsBytes
                    let (path, order) = try place.file(isLarge ? Place.part + 1 : 1000, key: "\(said.count).bin")
                    let notes = Notes()
                    do throws(DeliveryError) {
                        _ = try await place.pipeline.probe()
                    } catch {
                        said.append(error.reason)
                    }
                    if let error = try await place.failure(path, order, notes.attempt()) { said.append(error.reason) }
                    said += notes.entries.values.map { String(decoding: $0, as: UTF8.self) }
                    place.behave()
                }
            }
            #expect(said.contains { $0.contains("***") }, "no answer was repeated")
            for text in said {
                for canary in Self.canaries + Self.tokens { #expect(canary.trace(in: text) == nil, "\(text)") }
            }
        }
    }

    @Test func `no credential comes back in a proof`() async throws {
        try await withPlace(.r2("v1")) { place in
            let (path, order) = try place.file(Place.part + 1)
            let body = #"{"object_url":"https://cdn.example/\#(Place.apiKey)/x?k=\#(Place.apiKey)"}"#
            place.misbehave(.reply(FaultReply(200, type: "application/json", body: body)), at: .complete)
            let proof = try await place.deliver(path, order).get()
            #expect(proof.url == "https://cdn.example/***/x")
        }
        try await withPlace(.gigHive("multipart")) { place in
            let (path, order) = try place.file(1000)
            let digest = Checksum.sha256(content(1000)).hex
            let body =
                #"{"asset_id":7,"checksum_sha256":"\#(digest)","delete_token":"token-canary","note":"\#(Echo.mark)"}"#
            place.misbehave(.echo(FaultReply(201, type: "application/json", body: body)), at: .single)
            let proof = try await place.deliver(path, order).get()
            let answer = try #require(proof.details?["answer"])
            #expect(answer.contains("***") && !answer.contains("token-canary"))
            for canary in Self.canaries { #expect(canary.trace(in: answer) == nil, "\(answer)") }
        }
    }

    @Test func `what a server says of an object is held to two kibibytes without control characters`() {
        let long = String(repeating: "é", count: 3000)
        let proof = Proof(
            key: "k", size: 1, method: .size, etag: long, url: "https://h/\u{1B}[2J",
            details: ["a": long, "b": "x\n\u{7}"])
        #expect(proof.etag == nil && proof.url == nil)
        #expect(proof.details?["a"]?.utf8.count == Proof.longestText && proof.details?["b"] == "x\\x0A\\x07")
        let fine = Proof(key: "k", size: 1, method: .size, etag: "e", url: "https://h/ü", details: ["a": "ü"])
        #expect(fine.etag == "e" && fine.url == "https://h/ü" && fine.details == ["a": "ü"])
    }
}
