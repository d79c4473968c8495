import Foundation
import InletCore
import InletSandbox
import Testing

@Suite struct VOPIUploadTests {
    @Test func `a video goes in by its presigned address`() async throws {
        try await withVOPI { sandbox, client async throws in
            let video = noise(300_000, seed: 1)
            let presigned = try await client.presign()
            let key = try #require(presigned.value["key"]?.text)
            #expect(presigned.status == 200 && presigned.value["expiresIn"]?.number == 3600)
            #expect(key.hasPrefix("uploads/") && key.hasSuffix(".mov"))
            let url = try #require(presigned.value["uploadUrl"]?.text)
            for _ in 0..<2 {
                let put = try await client.http.send("PUT", url, video, headers: ["Content-Type": "video/quicktime"])
                #expect(put.status == 200 && put.headers["etag"] == "\"\(md5(video))\"")
            }
            let kept = try #require(sandbox.videos().first)
            #expect(kept.key == key && kept.publicURL == presigned.value["publicUrl"]?.text)
            #expect(kept.sha256.hex == sha256(video) && kept.size == 300_000)
            #expect(kept.contentType == "video/quicktime" && kept.puts == 2)
            #expect(sandbox.tally.presigns == 1 && sandbox.tally.puts == 2)
        }
    }

    @Test(arguments: [
        ("clip.webm", "webm"), ("evil.exe", "exe"), ("a.b/c", "mp4"), ("noending", "mp4"), ("x.", "mp4"), ("", "mp4"),
    ])
    func `the ending of the key is the name's, whatever the type is`(_ name: String, _ ending: String) async throws {
        try await withVOPI { _, client async throws in
            let key = try await client.presign(["filename": .string(name)]).value["key"]?.text ?? ""
            #expect(key.hasSuffix("." + ending))
        }
    }

    @Test func `an address is good for its time only, and for PUT without a login`() async throws {
        let clock = TestClock()
        try await withVOPI(faults: VOPIFault(.expiredURLs, at: .presign), clock: clock) {
            sandbox, client async throws in
            for wait in [Duration.zero, .seconds(61)] {
                let url = try await client.presign(["expiresIn": 60]).value["uploadUrl"]?.text ?? ""
                clock.pass(wait)
                let late = try await client.http.send("PUT", url, Data("x".utf8))
                #expect(late.status == 403 && late.text.contains("Request has expired"))
            }
            let url = try await client.presign().value["uploadUrl"]?.text ?? ""
            let signed = try await client.http.send("PUT", url, Data("x".utf8), headers: ["Authorization": "Bearer x"])
            #expect(signed.status == 400 && signed.text.contains("Only one auth mechanism"))
            #expect(try await client.http.send("PUT", url + "0", Data("x".utf8)).status == 403)
            #expect(sandbox.videos().isEmpty && sandbox.tally.puts == 0)
        }
    }

    static let refusals: [(SandboxJSON, String)] = [
        (["expiresIn": 86_401], "400 VALIDATION_ERROR"), (["expiresIn": 59], "400 VALIDATION_ERROR"),
        (["expiresIn": .number(90.5)], "422 VALIDATION_ERROR"), (["expiresIn": "3600"], "200 "),
        (["contentType": .null], "400 VALIDATION_ERROR"), (["contentType": "video/x-matroska"], "400 VALIDATION_ERROR"),
        (["filename": .null], "200 "),
        (["filename": .string(String(repeating: "a", count: 256))], "400 VALIDATION_ERROR"),
        ([:], "200 "), (["unknown": 1], "200 "), ("text", "400 VALIDATION_ERROR"), ([1], "400 VALIDATION_ERROR"),
    ]

    @Test(arguments: refusals)
    func `presign checks what it is asked`(_ body: SandboxJSON, _ answer: String) async throws {
        try await withVOPI { _, client async throws in
            #expect(try await client.presign(body).coded == answer)
        }
    }

    @Test func `bodies are refused before logins are, and types as if the server were at fault`() async throws {
        try await withVOPI { _, client async throws in
            var nobody = client
            nobody.token = nil
            #expect(try await nobody.presign(["expiresIn": 1]).status == 400)
            #expect(try await nobody.presign([:]).status == 401)
            func raw(_ type: String, _ body: Data) async throws -> String {
                let headers = ["Content-Type": type, "Authorization": "Bearer \(client.token ?? "")"]
                let url = client.http.origin + "/api/v1/uploads/presign"
                return try await client.http.send("POST", url, body, headers: headers).coded
            }
            #expect(try await raw("application/json", Data("{".utf8)) == "500 INTERNAL_ERROR")
            #expect(try await raw("application/json; charset=utf-8", Data("{}".utf8)) == "200 ")
            #expect(try await raw("text/plain", Data("hi".utf8)) == "400 VALIDATION_ERROR")
            #expect(try await raw("application/xml", Data("<a/>".utf8)) == "500 INTERNAL_ERROR")
            let large = Data("{\"a\":\"\(String(repeating: "x", count: 1 << 20))\"}".utf8)
            #expect(try await raw("application/json", large) == "500 INTERNAL_ERROR")
        }
    }
}
