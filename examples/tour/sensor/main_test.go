package main

func Example() {
	main()
	// Output:
	// torn readings: 0 last: 100000 [100000 200000 300000 400000 500000 600000]
}
