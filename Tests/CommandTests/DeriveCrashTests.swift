import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// The process dies while a program makes something of a file, and after; both arrive, once.
@Suite struct DeriveCrashTests {
    /// - Parameter script: run by sh with the original and the file to be made.
    private static func place(_ script: String) throws -> Place {
        let place = try Place()
        let file = try place.folder.write(script.utf8, to: "make.sh")
        try place.configure(
            text: """
                state_dir: state
                log: { level: debug }
                destinations:
                  store: { type: folder, path: library }
                watch:
                  - { path: drop, settle: 0s, archive_dir: .inlet/done }
                routes:
                  - name: all
                    key: "{dir}/{name}"
                    to: store
                    on_success: archive
                    derive:
                      - { name: copy, command: [sh, "\(file.string)", "{in}", "{out}"], suffix: .copy.txt }

                """)
        return place
    }

    /// Nothing is left over of what was made.
    private static func made(_ place: Place) -> [String] {
        Place.files(below: place.state.appending("derived")).keys.sorted()
    }

    @Test(.timeLimit(.minutes(8)))
    func `a file and what was made of it arrive once, whatever the process was doing`() async throws {
        let place = try Self.place("head -c 100 \"$1\" > \"$2\"\n")
        let archive = place.drop.appending(".inlet").appending("done")
        var (stored, archived): ([String: Data], [String: Data]) = ([:], [:])
        for (round, point) in CrashPoints.companion.list.enumerated() {
            let (name, content) = ("gigs/clip\(round).mp4", bytes(500 + round, seed: UInt64(round + 1)))
            (stored[name], stored[name + ".copy.txt"]) = (content, content.prefix(100))
            archived[name] = content
            try place.put(FilePath(name), content)
            try await place.die(at: point)
            let next = try await place.run()
            try await next.wait("both after \(point)") {
                place.exists(archive.pushing(FilePath(name)))
                    && place.exists(place.library.pushing(FilePath(name + ".copy.txt")))
            }
            try await next.kill()
        }
        let last = try await place.run()
        try await last.wait("every receipt") {
            try await place.inlet("receipts", "--limit", "1000").objects().count >= stored.count
        }
        try await last.wait("all that was made is removed") { Self.made(place).isEmpty }
        #expect(try await last.stop() == .code(0))
        #expect(Place.files(below: place.library) == stored)
        #expect(Place.files(below: archive) == archived)
        #expect(Place.files(below: place.drop.appending("gigs")) == [:])
        let receipts = try await place.inlet("receipts", "--limit", "1000").objects()
        #expect(receipts.count == stored.count)
        #expect(receipts.count { $0["role"] as? String == "derived" } == archived.count)
        let balance = try await place.balance()
        #expect(balance["delivered"] == stored.count && balance["pending"] == 0, "\(balance)")
    }

    @Test(.timeLimit(.minutes(4)))
    func `a program that outlives a killed process spoils nothing of the next one's`() async throws {
        let place = try Self.place("")
        // The process that starts programs for a confined agent ends them with it.
        try place.configure(replacing: "state_dir: state", with: "landlock: off\nstate_dir: state")
        let folder = place.folder.path.string
        // Each run waits for the gate, for a minute at most, and says which it was.
        let script = """
            word=first; [ -e '\(folder)/begun' ] && word=second
            echo $word >> '\(folder)/begun'
            turn=0
            until [ -e '\(folder)/gate' ] || [ $turn -ge 3000 ]; do turn=$((turn + 1)); sleep 0.02; done
            { echo $word > "$2"; } 2> /dev/null
            echo $word >> '\(folder)/ended'

            """
        try place.folder.write(script.utf8, to: "make.sh")
        func words(_ name: String) -> [String] {
            let text = (try? place.content(place.folder.path.appending(name))) ?? Data()
            return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        try place.put("clip.mp4", bytes(500))
        let first = try await place.run()
        try await first.wait("the program runs") { words("begun").count == 1 }
        try await first.kill()
        #expect(Place.files(below: place.library) == [:])
        let next = try await place.run()
        try await next.wait("it runs again") { words("begun").count == 2 }
        try place.folder.write([], to: "gate")
        try await next.wait("both runs have ended") { words("ended").count == 2 }
        try await next.wait("all is sent and removed") {
            place.exists(place.library.appending("clip.mp4.copy.txt")) && Self.made(place).isEmpty
        }
        #expect(try await next.stop() == .code(0))
        #expect(
            Place.files(below: place.library) == ["clip.mp4": bytes(500), "clip.mp4.copy.txt": Data("second\n".utf8)])
        #expect(try await place.balance()["delivered"] == 2)
    }
}
