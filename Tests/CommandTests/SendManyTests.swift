import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What `inlet send` does with many names, and what becomes of it when somebody stops it or its agent.
@Suite(.serialized) struct SendManyTests {
    /// More than are handed in at once, with options between them, one of them twice, one that is not there, and one whose
    /// name is no text.
    @Test(arguments: [true, false])
    func `of many files all arrive under their names, wherever options stand, and are told in their order`(
        _ running: Bool
    ) async throws {
        try await withSpiral { place, sandbox in
            let agent = running ? try await place.run() : nil
            let names = (1000..<1530).map { "film-\($0).mov" }
            for name in names + ["--dry.mov"] { try place.folder.write(Data(name.utf8), to: FilePath(name)) }
            let odd = Array("odd-".utf8) + [0xFF] + Array(".mov".utf8)
            try Tool.write(Data("odd".utf8), to: Array(place.folder.path.string.utf8) + [UInt8(ascii: "/")] + odd)
            // The shell writes a byte that Foundation's arguments cannot hold.
            let command = ["send", "absent.mov"] + names.prefix(30) + ["--to", "store"] + names.dropFirst(29)
            let process = try InletProcess(
                command + ["--config=\(place.configuration)"], in: place.folder.path,
                launcher: ["/bin/sh", "-c", "exec \"$0\" \"$@\" \"$(printf 'odd-\\377.mov')\" -- --dry.mov"])
            let told = { process.output.split(separator: "\n").filter { $0.contains("→") } }
            for share in 1...4 {
                try await process.wait("quarter \(share) is told of") { told().count >= names.count * share / 4 }
            }
            #expect(try await process.ending() == .code(1), "\(process.errors)")
            #expect(process.errors.contains("absent.mov: not a regular file, or not there"), "\(process.errors)")
            #expect(told().count == names.count + 2)
            #expect(zip(told(), names).allSatisfy { $0.contains($1) } && told().last?.contains("--dry.mov") == true)
            let stored = try sandbox.objects().map { try place.content($0.path) }
            #expect(Set(stored) == Set((names + ["--dry.mov", "odd"]).map { Data($0.utf8) }))
            #expect(stored.count == names.count + 2)
            withExtendedLifetime(agent) {}
        }
    }

    /// A place whose files take some seconds.
    private func withSlowSpiral(_ body: @Sendable @escaping (Place, SpiralSandbox) async throws -> Void) async throws {
        let place = try Place()
        try await withSandbox(place.folder.path.appending("store")) { sandbox, port in
            var config = ConfigText.spiral(port)
            config.top.append("limits: { bandwidth: 2MiB/s }")
            try place.configure(config)
            try await body(place, sandbox)
        }
    }

    @Test func `a send goes on with an agent that is killed and started again`() async throws {
        try await withSlowSpiral { place, sandbox in
            let file = try place.folder.write(bytes(6 << 20), to: "film.mov")
            let first = try await place.run()
            let sending = try place.start("send", file.string)
            try await first.line("job.started")
            try await first.kill()
            let second = try await place.run()
            #expect(try await sending.ending() == .code(0), "\(sending.errors)")
            #expect(sending.output.contains("film.mov →") && second.lines("job.finished").count == 1)
            #expect(try place.content(#require(sandbox.objects().first).path) == bytes(6 << 20))
        }
    }

    @Test func `what the agent has taken is sent when the command is stopped`() async throws {
        try await withSlowSpiral { place, sandbox in
            let files = try (0..<3).map { number in
                try place.folder.write(bytes(2 << 20, seed: UInt64(number)), to: FilePath("film-\(number).mov"))
            }
            let agent = try await place.run()
            let sending = try place.start("send", files[0].string, files[1].string, files[2].string)
            try await agent.line("job.admitted", number: files.count)
            sending.signal(SIGINT)
            #expect(try await sending.ending() == .signal(SIGINT))
            try await agent.line("job.finished", number: files.count)
            #expect(sandbox.objects().count == files.count)
        }
    }

    @Test func `without an agent a send that is stopped says so, and goes on when it is repeated`() async throws {
        try await withSlowSpiral { place, sandbox in
            let file = try place.folder.write(bytes(6 << 20), to: "film.mov")
            let stopped = try place.start("send", file.string)
            try await stopped.wait("it has begun") { sandbox.traffic.counts[.create] == 1 }
            stopped.signal(SIGINT)
            #expect(try await stopped.ending() == .code(130), "\(stopped.errors)")
            #expect(stopped.errors.contains("repeating the command goes on") && !stopped.output.contains("→"))
            try await place.inlet("send", file.string, code: 0)
            #expect(try place.content(#require(sandbox.objects().first).path) == bytes(6 << 20))
        }
    }

    @Test func `a file that vanishes after it was handed in is told of as gone, and the others arrive`() async throws {
        try await withSlowSpiral { place, sandbox in
            let files = try (0..<3).map { number in
                try place.folder.write(bytes(2 << 20, seed: UInt64(number)), to: FilePath("film-\(number).mov"))
            }
            let agent = try await place.run()
            try await place.inlet("limit", "0", code: 0)
            try await place.inlet(["send"] + files.map(\.string), code: 69)
            try FileManager.default.removeItem(atPath: files[1].string)
            try await place.inlet("limit", "auto", code: 0)
            try await agent.wait("all have ended") {
                let balance = try await place.balance()
                return balance["delivered"] == 2 && balance["gone"] == 1
            }
            try await place.inlet("send", files[0].string, files[2].string, code: 0)
            #expect(sandbox.objects().count == 2)
        }
    }
}
