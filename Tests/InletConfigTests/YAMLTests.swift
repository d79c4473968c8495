import InletConfig
import InletCore
import SystemPackage
import Testing

/// What no file may do to the reader, whatever stands in it.
struct YAMLTests {
    @Test func `a file over 1 MiB is refused`() {
        let text = String(repeating: "# all comment\n", count: 80_000)
        #expect(complaints(text).hasPrefix("inlet.yaml:1:1: the file is larger than 1 MiB"))
    }

    @Test func `nesting is bounded`() {
        let flow = String(repeating: "[", count: 100_000)
        #expect(complaints(flow).hasPrefix("inlet.yaml:1:65: values are nested deeper than 64 levels"))
        var block = ""
        for depth in 0..<80 { block += String(repeating: " ", count: depth) + "a:\n" }
        #expect(complaints(block).contains("nested deeper"))
    }

    @Test func `an alias bomb is refused at the alias that would burst it`() {
        var text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        for (name, last) in zip("bcdefgh", "abcdefg") {
            let aliases = Array(repeating: "*\(last)", count: 10).joined(separator: ", ")
            text += "\(name): &\(name) [\(aliases)]\n"
        }
        #expect(complaints(text).hasPrefix("inlet.yaml:4:36: "))
        #expect(complaints(text).contains("more than 10000 values"))
    }

    @Test func `merge keys do not escape the bound`() {
        var text = "a: &a { x: 1, y: 2 }\n"
        for (name, last) in zip("bcdefghijklmnop", "abcdefghijklmno") {
            text += "\(name): &\(name) { p: *\(last), q: *\(last), <<: *\(last) }\n"
        }
        #expect(complaints(text).contains("more than 10000 values"))
    }

    @Test func `a byte order mark does not move positions`() {
        #expect(complaints("\u{FEFF}workers: x").hasPrefix("inlet.yaml:1:10: 'x' is not a whole number"))
    }

    @Test(arguments: ["\n", "\r\n", "\r", "\u{2028}"])
    func `lines are counted as libyaml counts them`(lineBreak: String) {
        let text = ["log:", "  level: info", "workers: x", "limits: {}"].joined(separator: lineBreak)
        let head = "inlet.yaml:3:10: 'x' is not a whole number from 1 to 64\nworkers: x\n         ^"
        #expect(complaints(text) == head)
    }

    @Test func `an own key wins over a merged one, an earlier merge over a later`() throws {
        let config = try parse(
            """
            x-one: &one { workers: 2, shutdown_timeout: 1s }
            x-two: &two { workers: 3, shutdown_timeout: 2s, state_dir: /two }
            <<: [*one, *two]
            workers: 5
            """)
        #expect(config.settings.workers == 5)
        #expect(config.settings.shutdownGrace == .seconds(1))
        #expect(config.settings.stateDirectory == "/two")
    }

    @Test func `a long line is cut around the caret`() {
        let text = "log: { output: \"" + String(repeating: "x", count: 5000) + "\", level: loud }"
        let lines = complaints(text).split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[1].count == 160)
        #expect(lines[1].hasSuffix("level: loud }"))
        let caret = lines[2].count
        #expect(lines[1].dropFirst(caret - 1).hasPrefix("loud"))
    }

    @Test func `terminal controls in the source do not reach the terminal`() {
        let text = complaints("workers: \"\u{202E}65\" # \u{9B}2J")
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || !(0..<0x20).contains($0.value) })
        #expect(!text.contains("\u{202E}") && !text.contains("\u{9B}"))
    }
}
