SELECT * FROM wine
TO RUN binning.py
CMD "--columns=alcohol,proline", "--bins=5"
INTO bins_of_wine;
SELECT * FROM bins_of_wine ORDER BY 1, bin;
