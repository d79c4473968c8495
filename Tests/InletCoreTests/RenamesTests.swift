import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct RenamesTests {
    private func renamed(_ pairs: (FilePath, FilePath)...) -> Renames {
        var renames = Renames()
        for (cookie, (old, new)) in pairs.enumerated() {
            renames.leaves(old, cookie: UInt32(cookie + 1))
            renames.reaches(new, cookie: UInt32(cookie + 1))
        }
        return renames
    }

    @Test func `two halves with one cookie are a rename`() {
        let renames = renamed(("a", "x/b"))
        #expect(renames.origin(of: "x/b") == "a")
        #expect(renames.origin(of: "a") == nil && renames.origin(of: "x") == nil && !renames.isEmpty)
    }

    @Test func `halves of different renames do not match, nor does one without the other`() {
        var renames = Renames()
        renames.leaves("a", cookie: 1)
        renames.reaches("b", cookie: 2)
        #expect(renames.isEmpty && renames.origin(of: "b") == nil)
        renames.reaches("c", cookie: 1)
        #expect(renames.origin(of: "c") == "a")
    }

    @Test func `a file below a renamed folder has its old path from it`() {
        let renames = renamed(("2026/old", "2026/new"))
        #expect(renames.origin(of: "2026/new/x/a.jpg") == "2026/old/x/a.jpg")
        #expect(renames.origin(of: "2026/newer/a.jpg") == nil)
    }

    @Test func `of several renames of a file the first name counts`() {
        let renames = renamed(("a", "b"), ("b", "c"), ("folder", "other"), ("other/x", "y"))
        #expect(renames.origin(of: "c") == "a" && renames.origin(of: "b") == nil)
        #expect(renames.origin(of: "y") == "folder/x")
    }

    @Test func `a file that is renamed back has no other name`() {
        #expect(renamed(("a", "b"), ("b", "a")).isEmpty)
    }

    @Test func `what was asked about, or made anew, is forgotten`() {
        var renames = renamed(("a", "b"))
        renames.forget("b")
        #expect(renames.isEmpty)
    }

    @Test func `a file from outside under a name that was renamed to is not that file`() {
        var renames = renamed(("a", "b"))
        renames.reaches("b", cookie: 77)
        #expect(renames.origin(of: "b") == nil)
    }

    @Test func `memory is bounded, and the oldest goes first`() {
        var renames = Renames(capacity: 3)
        for number in 0..<200 as Range<UInt32> {
            renames.leaves(FilePath("lost\(number)"), cookie: 1000 + number)
            renames.leaves(FilePath("a\(number)"), cookie: number)
            renames.reaches(FilePath("b\(number)"), cookie: number)
        }
        #expect((0..<200).filter { renames.origin(of: FilePath("b\($0)")) != nil } == [197, 198, 199])
        renames.reaches("late", cookie: 1000)
        #expect(renames.origin(of: "late") == nil)
    }

    @Test(arguments: 0..<30) func `random renames of files agree with a model that follows each`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var renames = Renames()
        // Where each file began, by where it is.
        var model: [FilePath: FilePath] = [:]
        for number in 0..<8 { model[FilePath("f\(number)")] = FilePath("f\(number)") }
        for cookie in 1...300 as ClosedRange<UInt32> {
            guard let old = model.keys.sorted(by: { $0.string < $1.string }).randomElement(using: &generator) else {
                break
            }
            let new = FilePath("f\(Int.random(in: 0..<20, using: &generator))")
            guard model[new] == nil else { continue }
            renames.leaves(old, cookie: cookie)
            renames.reaches(new, cookie: cookie)
            model[new] = model.removeValue(forKey: old)
        }
        for (path, origin) in model { #expect(renames.origin(of: path) == (path == origin ? nil : origin), "\(path)") }
    }
}
