import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct GlobPatternTests {
    @Test(arguments: [
        ("", 0, "empty"), ("/", 0, "empty"), ("!*.bak", 0, "negate"), ("a//b", 2, "two slashes"), ("a/../b", 2, "'..'"),
        ("./a", 0, "'.'"), ("a[bc", 1, "not closed"), ("a[", 1, "not closed"), ("a\\", 1, "backslash"),
        ("[z-a]", 1, "backwards"), ("[a/b]", 2, "'/'"), ("[ä]", 1, "ASCII"), ("[[:nope:]]", 1, "unknown class"),
        ("a\u{0}b", 1, "NUL"), (String(repeating: "a/", count: 70), 0, "more than"),
    ])
    func `a pattern that could never match is refused where it goes wrong`(text: String, offset: Int, word: String) {
        let error = #expect(throws: PatternError.self) { try GlobPattern(text) }
        #expect(error?.offset == offset)
        #expect(error?.message.contains(word) == true)
    }

    @Test(
        arguments: [
            ("*.bak", "x.bak", true), ("*.bak", "a/b/x.bak", true), ("*.bak", "x.bak.txt", false),
            ("*.BAK", "x.bak", false),
            ("*.bak", "x.bak/inside", true), ("/x", "x", true), ("/x", "a/x", false), ("a/x", "b/a/x", false),
            ("a/x", "a/x", true), ("gigs/**", "gigs/1/2.mp4", true), ("gigs/**", "gigs", false),
            ("gigs/**", "sub/gigs/1", false),
            ("**/x", "x", true), ("**/x", "a/b/x", true), ("a/**/b", "a/b", true), ("a/**/b", "a/1/2/b", true),
            ("a/**/b", "a/1/c", false), ("**", "any/thing", true), ("a**b", "axxb", true), ("a**b", "a/b", false),
            ("a?c", "abc", true), ("a?c", "a/c", false), ("[a-c]x", "bx", true), ("[!a-c]x", "bx", false),
            ("[^a]x", "bx", true),
            ("[]]x", "]x", true), ("[a-]x", "-x", true), ("[[:digit:]]", "7", true), ("[[:digit:]]", "d", false),
            ("[\\]]x", "]x", true), ("\\*", "*", true), ("\\*", "a", false), ("\\!a", "!a", true),
            ("#recycle", "#recycle/x", true),
            ("a*", "a", true), ("*", ".hidden", true), ("photos/*.jpg", "photos/a.jpg", true),
            ("photos/*.jpg", "photos/b/a.jpg", false), ("a/*", "a/b/c", true), ("naïve*", "naïve.txt", true),
        ] as [(String, String, Bool)])
    func `patterns follow gitignore`(pattern: String, path: String, matches: Bool) throws {
        #expect(try GlobPattern(pattern).matches(FilePath(path)) == matches)
    }

    @Test func `a trailing slash means folders and what is below them`() throws {
        let pattern = try GlobPattern("cache/")
        #expect(!pattern.matches("cache"))
        #expect(pattern.matches("cache", isDirectory: true))
        #expect(pattern.matches("a/cache/file"))
        #expect(try !GlobPattern("a/cache/").matches("b/a/cache/file"))
    }

    @Test func `names that are not UTF-8 match byte by byte`() throws {
        let path = FilePath(bytes: Array("a/caf".utf8) + [0xE9] + Array(".jpg".utf8))
        #expect(try GlobPattern("*.jpg").matches(path))
        #expect(try GlobPattern("caf?.jpg").matches(path))
        #expect(try !GlobPattern("café.jpg").matches(path))
    }

    @Test func `many stars do not blow up`() throws {
        let pattern = try GlobPattern(String(repeating: "a*", count: 100) + "b")
        let deep = try GlobPattern(String(repeating: "**/a/", count: 29) + "b")
        let clock = ContinuousClock()
        let time = clock.measure {
            #expect(!pattern.matches(FilePath(String(repeating: "a", count: 4000))))
            #expect(!deep.matches(FilePath(String(repeating: "a/", count: 500))))
        }
        #expect(time < .seconds(60))
    }

    @Test func `random patterns agree with a naive matcher`() throws {
        var generator = SeededGenerator(seed: 42)
        for _ in 0..<5000 {
            let pattern = random("ab*?/", 1...7, &generator)
            let path = random("ab/", 1...7, &generator).split(separator: "/").joined(separator: "/")
            guard !path.isEmpty, let glob = try? GlobPattern(pattern) else { continue }
            let isDirectory = Bool.random(using: &generator)
            let expected = NaiveGlob.matches(pattern, path, isDirectory)
            #expect(glob.matches(FilePath(path), isDirectory: isDirectory) == expected, "\(pattern) on \(path)")
        }
    }

    private func random(_ alphabet: String, _ length: ClosedRange<Int>, _ generator: inout SeededGenerator) -> String {
        String(
            (0..<Int.random(in: length, using: &generator)).compactMap { _ in alphabet.randomElement(using: &generator)
            })
    }
}

/// gitignore's rules written as plainly as possible, with backtracking over strings.
private enum NaiveGlob {
    static func matches(_ pattern: String, _ path: String, _ isDirectory: Bool) -> Bool {
        var pattern = Substring(pattern)
        let foldersOnly = pattern.hasSuffix("/")
        if foldersOnly { pattern.removeLast() }
        let isAnchored = pattern.contains("/")
        if pattern.hasPrefix("/") { pattern.removeFirst() }
        let segments = (isAnchored ? [] : ["**"]) + pattern.split(separator: "/").map(String.init)
        let names = path.split(separator: "/").map(String.init)
        return (1...names.count).contains { length in
            let isFolder = length < names.count || isDirectory
            return (isFolder || !foldersOnly) && folders(segments[...], names[..<length])
        }
    }

    private static func folders(_ pattern: ArraySlice<String>, _ names: ArraySlice<String>) -> Bool {
        guard let first = pattern.first else { return names.isEmpty }
        let rest = pattern.dropFirst()
        if first == "**" {
            if rest.isEmpty { return !names.isEmpty }
            return (0...names.count).contains { folders(rest, names.dropFirst($0)) }
        }
        guard let name = names.first else { return false }
        return characters(first[...], name[...]) && folders(rest, names.dropFirst())
    }

    private static func characters(_ pattern: Substring, _ name: Substring) -> Bool {
        guard let first = pattern.first else { return name.isEmpty }
        if first == "*" { return (0...name.count).contains { characters(pattern.dropFirst(), name.dropFirst($0)) } }
        guard let head = name.first, first == "?" || first == head else { return false }
        return characters(pattern.dropFirst(), name.dropFirst())
    }
}
