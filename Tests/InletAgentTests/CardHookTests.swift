import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// The program that follows the states of cards.
@Suite struct CardHookTests {
    private let folder: TemporaryDirectory
    private let log: EventLog
    private let book: FilePath

    init() throws {
        folder = try TemporaryDirectory()
        log = try EventLog(nil)
        book = folder.path.appending("book")
    }

    /// - Parameter script: `$1` is the book that it writes to.
    private func hook(_ script: String, timeout: Duration = .seconds(60)) -> CardHook {
        CardHook(["/bin/sh", "-c", script, "sh", book.string], timeout: timeout, log: log) { _ in .zero }
    }

    private var lines: [String] {
        let text = (try? String(contentsOfFile: book.string, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    private func running(_ hook: CardHook, _ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await hook.run() }
            try await body()
            group.cancelAll()
        }
    }

    private func tell(_ hook: CardHook, _ state: CardState, _ name: String = "EOS") {
        hook.tell(state, volume: name, path: FilePath("/media/\(name)/DCIM"), text: "\(name) is \(state.rawValue)")
    }

    @Test func `it knows the card, its state and the sentence, from its environment and its input`() async throws {
        let hook = hook(
            #"{ echo "$INLET_EVENT $INLET_CARD_STATE $INLET_VOLUME $INLET_PATH $INLET_TEXT"; cat; } > "$1.part"; mv "$1.part" "$1""#
        )
        try await running(hook) {
            tell(hook, .safe)
            try await eventually("it has run") { lines.count == 2 }
        }
        #expect(lines[0] == "card safe EOS /media/EOS/DCIM EOS is safe")
        let said = try #require(JSON.object(Array(lines[1].utf8)))
        let card = try #require(said["card"]?.object)
        #expect(said["event"]?.string == "card" && card["state"]?.string == "safe")
        #expect(card["name"]?.string == "EOS" && card["path"]?.string == "/media/EOS/DCIM")
    }

    @Test func `while it runs only the newest state of each card waits, and no card loses its own`() async throws {
        let gate = folder.path.appending("gate")
        let hook = hook(
            #"echo "$INLET_VOLUME $INLET_CARD_STATE" >> "$1"; while [ ! -e "\#(gate)" ]; do sleep 0.05; done"#)
        try await running(hook) {
            tell(hook, .inserted)
            try await eventually("the first runs") { lines == ["EOS inserted"] }
            tell(hook, .copying)
            tell(hook, .problem, "RED")
            tell(hook, .safe)
            try Data().write(to: URL(fileURLWithPath: gate.string))
            try await eventually("both are told") { lines.count == 3 }
        }
        #expect(lines == ["EOS inserted", "EOS safe", "RED problem"])
    }

    @Test func `one that hangs is ended after its time, and the next state is told`() async throws {
        let hook = hook(
            #"echo "$INLET_CARD_STATE" >> "$1"; [ $INLET_CARD_STATE = safe ] || exec sleep 600"#,
            timeout: .seconds(10))
        let events = EventRecord(log)
        try await running(hook) {
            tell(hook, .copying)
            try await eventually("the first runs") { lines == ["copying"] }
            tell(hook, .safe)
            try await eventually("the second has run") { lines == ["copying", "safe"] }
        }
        #expect(events.count("notification.failed") == 1)
    }

    @Test func `one that asks for another try gets it, unless the card has a newer state`() async throws {
        let hook = hook(
            #"n=$(cat "$1.n" 2>/dev/null || echo 0); echo $((n+1)) > "$1.n"; [ $n -ge 2 ] || exit 75; echo "$INLET_CARD_STATE" >> "$1""#
        )
        try await running(hook) {
            tell(hook, .problem)
            try await eventually("it was told at last") { lines == ["problem"] }
        }
        #expect(try String(contentsOfFile: book.string + ".n", encoding: .utf8) == "3\n")
    }
}
